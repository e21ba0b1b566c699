"""Chat models behind an OpenAI-compatible endpoint.

A call goes out and its reply comes back through these modules, in this order:

1. ``backbone`` takes the messages of a call and returns a completion.
2. ``requests`` writes them as a body in the server's dialect, with the JSON schemas of ``schemas``.
3. ``http_backbone`` paces the request and repeats it where that helps.
4. ``endpoint`` adds the key (``keys``) and sends the body by ``backbones.http``. Azure has addresses of its own
   (``azure``).
5. ``replies`` reads the text, the thoughts and the tokens (``token_counts``) of what came back. If it is an error,
   ``problems`` says what follows, by the words of the server (``wordings``).
6. ``outcomes`` makes a completion, a fault of the rollout or the end of the run of it.

``settings`` holds what a user can set. Before a run ``probing`` makes tiny calls, and ``listed_models`` reads how long
a context the server takes. ``list_prices`` knows the dollars of hosted models.
"""
