"""The formulas of the Formula-like sample set. The formulas are textbook facts; the wordings are written for this
project."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Formula:
    """A formula, the kinds of its numbers, three wordings of a problem, and how the answer is computed."""

    name: str
    text: str
    explanation: str
    numbers: Mapping[str, str]
    wordings: tuple[str, str, str]
    compute: Callable[..., float]


FORMULAS = (
    Formula(
        name="Current Ratio",
        text="Current Ratio = Current Assets / Current Liabilities",
        explanation="Current Assets: what turns into cash within a year, Current Liabilities: what falls due by then",
        numbers={"a": "money", "b": "money"},
        wordings=(
            "A {business} holds current assets of {a} against current liabilities of {b}. What is its current ratio?",
            "Current liabilities of a {business} stand at {b}, current assets at {a}. Find the current ratio.",
            "How large is the current ratio of a {business} with {a} in current assets and {b} in current liabilities?",
        ),
        compute=lambda a, b: a / b,
    ),
    Formula(
        name="Working Capital",
        text="Working Capital = Current Assets - Current Liabilities",
        explanation="Current Assets: what turns into cash within a year, Current Liabilities: what falls due by then",
        numbers={"a": "big_money", "b": "money"},
        wordings=(
            "With current assets of {a} and current liabilities of {b}, what working capital has a {business}?",
            "A {business} owes {b} within the year and has current assets of {a}. Compute its working capital.",
            "Find the working capital of a {business}: current assets {a}, current liabilities {b}.",
        ),
        compute=lambda a, b: a - b,
    ),
    Formula(
        name="Quick Ratio (Acid-Test Ratio)",
        text="Quick Ratio = (Current Assets - Inventories) / Current Liabilities",
        explanation="Inventories: goods in stock, which cannot be sold at once",
        numbers={"a": "big_money", "s": "money", "b": "money"},
        wordings=(
            "A {business} has current assets of {a}, {s} of them inventories, and current liabilities of {b}. "
            "What is the quick ratio?",
            "Inventories of {s} are part of a {business}'s current assets of {a}; its current liabilities are {b}. "
            "Find the acid-test ratio.",
            "Current liabilities: {b}. Current assets: {a}. Inventories among them: {s}. Compute the quick ratio.",
        ),
        compute=lambda a, s, b: (a - s) / b,
    ),
    Formula(
        name="Debt-to-Equity Ratio",
        text="Debt-to-Equity Ratio = Total Liabilities / Shareholders' Equity",
        explanation="Shareholders' Equity: what belongs to the owners",
        numbers={"a": "money", "b": "money"},
        wordings=(
            "A {business} has total liabilities of {a} and shareholders' equity of {b}. Give its debt-to-equity ratio.",
            "Owners hold equity of {b} in a {business} that owes {a} in total. What is the debt-to-equity ratio?",
            "Find debt to equity for a {business} with liabilities of {a} and equity of {b}.",
        ),
        compute=lambda a, b: a / b,
    ),
    Formula(
        name="Interest Coverage Ratio",
        text="Interest Coverage Ratio = EBIT / Interest Expense",
        explanation="EBIT: earnings before interest and taxes",
        numbers={"a": "big_money", "b": "money"},
        wordings=(
            "EBIT of a {business} is {a}, its interest expense {b}. What is the interest coverage ratio?",
            "A {business} pays interest of {b} out of an EBIT of {a}. Compute its interest coverage ratio.",
            "How often does an EBIT of {a} cover interest of {b}? Give the interest coverage ratio.",
        ),
        compute=lambda a, b: a / b,
    ),
    Formula(
        name="Inventory Turnover",
        text="Inventory Turnover = Cost of Goods Sold / Average Inventory",
        explanation="Cost of Goods Sold: what the goods cost to make, Average Inventory: mean stock of the period",
        numbers={"a": "big_money", "b": "money"},
        wordings=(
            "A {business} sold goods that cost {a} and kept an average inventory of {b}. Find the inventory turnover.",
            "Average inventory was {b} and cost of goods sold {a}. What is the inventory turnover of the {business}?",
            "Compute the inventory turnover of a {business} with cost of goods sold of {a} and a mean stock of {b}.",
        ),
        compute=lambda a, b: a / b,
    ),
    Formula(
        name="Gross Profit Margin",
        text="Gross Profit Margin = (Gross Profit / Revenue) × 100",
        explanation="Gross Profit: revenue less the cost of goods",
        numbers={"a": "money", "b": "big_money"},
        wordings=(
            "On revenue of {b} a {business} made a gross profit of {a}. What is its gross profit margin?",
            "Gross profit {a}, revenue {b}: find the gross profit margin of the {business}.",
            "A {business} took in {b} and kept a gross profit of {a}. Compute the gross profit margin.",
        ),
        compute=lambda a, b: a / b * 100,
    ),
    Formula(
        name="Net Profit Margin",
        text="Net Profit Margin = (Net Profit / Revenue) × 100",
        explanation="Net Profit: what is left after all costs and taxes",
        numbers={"a": "money", "b": "big_money"},
        wordings=(
            "A {business} earned a net profit of {a} on revenue of {b}. What is the net profit margin?",
            "Revenue was {b} and net profit {a}. Find the net profit margin of the {business}.",
            "Compute the net profit margin of a {business} that kept {a} of net profit from {b} of revenue.",
        ),
        compute=lambda a, b: a / b * 100,
    ),
    Formula(
        name="Operating Margin",
        text="Operating Margin = (Operating Income / Revenue) × 100",
        explanation="Operating Income: earnings before interest and taxes",
        numbers={"a": "money", "b": "big_money"},
        wordings=(
            "With operating income of {a} and revenue of {b}, what is the operating margin of a {business}?",
            "A {business} shows revenue of {b} and operating income of {a}. Give the operating margin.",
            "Find the operating margin where operating income is {a} and revenue is {b}.",
        ),
        compute=lambda a, b: a / b * 100,
    ),
    Formula(
        name="Return on Assets (ROA)",
        text="ROA = (Net Income / Total Assets) × 100",
        explanation="Total Assets: all that the company owns",
        numbers={"a": "money", "b": "big_money"},
        wordings=(
            "A {business} owns assets of {b} and has a net income of {a}. What is its return on assets?",
            "Net income {a}, total assets {b}: compute the ROA of the {business}.",
            "What ROA does a {business} reach with a net income of {a} from total assets of {b}?",
        ),
        compute=lambda a, b: a / b * 100,
    ),
    Formula(
        name="Return on Equity (ROE)",
        text="ROE = (Net Income / Shareholder's Equity) × 100",
        explanation="Shareholder's Equity: what belongs to the owners",
        numbers={"a": "money", "b": "big_money"},
        wordings=(
            "Owners of a {business} hold equity of {b}; net income was {a}. What is the return on equity?",
            "Compute the ROE of a {business} with a net income of {a} and shareholders' equity of {b}.",
            "What ROE follows from equity of {b} and a net income of {a}?",
        ),
        compute=lambda a, b: a / b * 100,
    ),
    Formula(
        name="Inflation Rate",
        text="Inflation Rate = ((CPI_this year - CPI_last year) / CPI_last year) × 100",
        explanation="CPI: the consumer price index of a year",
        numbers={"a": "index", "b": "index"},
        wordings=(
            "A price index went from {b} to {a} within a year. What is the inflation rate?",
            "Last year's consumer price index was {b}, this year's is {a}. Find the inflation rate.",
            "Compute the inflation rate for a CPI of {a} this year after {b} the year before.",
        ),
        compute=lambda a, b: (a - b) / b * 100,
    ),
    Formula(
        name="Unemployment Rate",
        text="Unemployment Rate = (Number of Unemployed / Labor Force) × 100",
        explanation="Labor Force: all who work or look for work",
        numbers={"a": "count", "b": "big_count"},
        wordings=(
            "In a town of {b} workers and jobseekers {a} people have no job. What is the unemployment rate?",
            "The labor force counts {b}, the unemployed {a}. Find the unemployment rate.",
            "Compute the unemployment rate of a county with {a} unemployed in a labor force of {b}.",
        ),
        compute=lambda a, b: a / b * 100,
    ),
    Formula(
        name="Return on Investment (ROI)",
        text="ROI = (Gain from Investment - Cost of Investment) / Cost of Investment",
        explanation="Gain from Investment: what it brings in, Cost of Investment: what was put in",
        numbers={"a": "money", "b": "money"},
        wordings=(
            "A {business} put {b} into a machine that brought in {a}. What is the ROI?",
            "An investment of {b} by a {business} yields {a}. Compute the return on investment.",
            "Find the ROI of a project that cost {b} and gained {a}.",
        ),
        compute=lambda a, b: (a - b) / b,
    ),
    Formula(
        name="Dividend Yield",
        text="Dividend Yield = Annual Dividends per Share / Price per Share",
        explanation="Price per Share: what a share costs on the market",
        numbers={"a": "dividend", "b": "price"},
        wordings=(
            "A share of a {business} costs {b} and pays dividends of {a} a year. What is the dividend yield?",
            "Yearly dividends are {a} a share, the price is {b}. Find the dividend yield.",
            "Compute the dividend yield of a {business} whose share, priced at {b}, pays {a} a year.",
        ),
        compute=lambda a, b: a / b,
    ),
    Formula(
        name="Dividend Payout Ratio",
        text="Dividend Payout Ratio = Dividends per Share / Earnings per Share",
        explanation="Earnings per Share: profit for each share",
        numbers={"a": "dividend", "b": "price"},
        wordings=(
            "Of earnings of {b} a share a {business} pays out {a}. What is the dividend payout ratio?",
            "A {business} pays dividends of {a} and earns {b} a share. Find the payout ratio.",
            "Compute the dividend payout ratio for dividends of {a} and earnings of {b} a share.",
        ),
        compute=lambda a, b: a / b,
    ),
    Formula(
        name="Cost of Equity (Gordon Growth Model)",
        text="R_e = D_1 / P_0 + g",
        explanation="D_1: next year's dividend, P_0: price of the share, g: growth rate of dividends",
        numbers={"d": "dividend", "p": "price", "g": "rate"},
        wordings=(
            "A share of a {business} costs {p}, will pay {d} next year, and dividends grow by {g}. "
            "What is the cost of equity?",
            "Dividends grow by {g} a year; next year's is {d} and the share trades at {p}. Find the cost of equity.",
            "Compute the cost of equity: price {p}, next dividend {d}, growth {g}.",
        ),
        compute=lambda d, p, g: d / p + g,
    ),
    Formula(
        name="Earnings Per Share (EPS)",
        text="EPS = (Net Income - Dividends on Preferred Stock) / Average Outstanding Shares",
        explanation="Average Outstanding Shares: mean number of shares held by owners",
        numbers={"a": "big_money", "p": "money", "n": "count"},
        wordings=(
            "A {business} earned {a}, paid {p} on preferred stock and had {n} shares on average. What is its EPS?",
            "With {n} average shares, a net income of {a} and preferred dividends of {p}, find earnings per share.",
            "Preferred dividends {p}, net income {a}, average shares {n}: compute the EPS of the {business}.",
        ),
        compute=lambda a, p, n: (a - p) / n,
    ),
    Formula(
        name="Market Capitalization",
        text="Market Cap = Shares Outstanding × Share Price",
        explanation="Shares Outstanding: shares held by owners",
        numbers={"n": "count", "p": "price"},
        wordings=(
            "A {business} has {n} shares outstanding at {p} each. What is its market capitalization?",
            "Shares of a {business} cost {p}; {n} of them are outstanding. Find the market cap.",
            "Compute the market capitalization for {n} shares priced at {p}.",
        ),
        compute=lambda n, p: n * p,
    ),
    Formula(
        name="Enterprise Value (EV)",
        text="EV = Market Cap + Debt - Cash",
        explanation="Market Cap: value of all shares, Debt: what is owed, Cash: money at hand",
        numbers={"m": "big_money", "d": "money", "c": "money"},
        wordings=(
            "A {business} is worth {m} on the market, owes {d} and holds {c} in cash. What is its enterprise value?",
            "Market cap {m}, debt {d}, cash {c}: find the enterprise value of the {business}.",
            "Cash of {c} and debt of {d} go with a market cap of {m}. Compute the EV.",
        ),
        compute=lambda m, d, c: m + d - c,
    ),
    Formula(
        name="Free Cash Flow (FCF)",
        text="FCF = Operating Cash Flow - Capital Expenditures",
        explanation="Capital Expenditures: money spent on plant and equipment",
        numbers={"a": "money", "b": "money"},
        wordings=(
            "Operations brought a {business} {a}; new equipment took {b}. What is the free cash flow?",
            "A {business} has an operating cash flow of {a} and capital expenditures of {b}. Find its free cash flow.",
            "Compute the free cash flow left when {b} of {a} in operating cash flow goes into equipment.",
        ),
        compute=lambda a, b: a - b,
    ),
    Formula(
        name="Balance of Trade",
        text="Balance of Trade = Exports - Imports",
        explanation="Exports: goods sold abroad, Imports: goods bought abroad",
        numbers={"a": "big_money", "b": "big_money"},
        wordings=(
            "An island sold goods for {a} abroad and bought goods for {b} there. What is its balance of trade?",
            "Imports were {b}, exports {a}. Find the balance of trade.",
            "Compute the trade balance for exports of {a} and imports of {b}.",
        ),
        compute=lambda a, b: a - b,
    ),
    Formula(
        name="Simple Interest",
        text="I = P × r × t",
        explanation="P: principal, r: yearly rate, t: years",
        numbers={"p": "money", "r": "rate", "t": "years"},
        wordings=(
            "A {business} lends {p} at {r} simple interest a year for {t} years. What interest does it earn?",
            "What simple interest do {p} bear in {t} years at {r} a year?",
            "Find the simple interest on {p} at {r} over {t} years.",
        ),
        compute=lambda p, r, t: p * r * t,
    ),
    Formula(
        name="Future Value (FV)",
        text="FV = PV × (1 + r)^n",
        explanation="PV: amount today, r: yearly rate, n: years",
        numbers={"p": "money", "r": "rate", "n": "years"},
        wordings=(
            "A {business} invests {p} at {r} a year, compounded yearly, for {n} years. What is the future value?",
            "To what future value do {p} grow in {n} years at {r} a year?",
            "Find the future value of {p} after {n} years at {r}.",
        ),
        compute=lambda p, r, n: p * (1 + r) ** n,
    ),
    Formula(
        name="Capital Asset Pricing Model (CAPM)",
        text="r_a = r_f + β (r_m - r_f)",
        explanation="r_f: risk-free rate, r_m: return of the market, β: how the asset moves with the market",
        numbers={"f": "small_rate", "m": "rate", "b": "beta"},
        wordings=(
            "Shares of a {business} have a beta of {b}; the risk-free rate is {f} and the market returns {m}. "
            "What return does the CAPM ask for?",
            "By the CAPM, find the expected return for a beta of {b}, a market return of {m} and a safe rate of {f}.",
            "Risk-free {f}, market {m}, beta {b}: compute the expected return of the {business} by the CAPM.",
        ),
        compute=lambda f, m, b: f + b * (m - f),
    ),
    Formula(
        name="Effective Annual Rate (EAR)",
        text="EAR = (1 + r/n)^n - 1",
        explanation="r: nominal yearly rate, n: compounding periods a year",
        numbers={"r": "rate", "n": "years"},
        wordings=(
            "A loan to a {business} bears {r} a year, compounded {n} times. What is the effective annual rate?",
            "Find the effective annual rate of a nominal {r} with {n} compounding periods a year.",
            "With {n} periods a year and a nominal rate of {r}, compute the EAR.",
        ),
        compute=lambda r, n: (1 + r / n) ** n - 1,
    ),
)
