"""Guest: AppWorld, everyday digital tasks done by code against the engine's own world of apps (paper, section 4.1)."""
