//! How a report looks, by day and by night.

use maud::html;

use super::chart::Chart;

/// Colours by name: `--c0` is Burn's, the others are ours in turn; told apart by everybody.
const COLOURS: &str = "\
:root{--paper:#fff;--panel:#f6f7f9;--ink:#1c2330;--soft:#5b6576;--line:#dfe3ea;\
--c0:#c8501e;--c1:#1f6fb5;--c2:#17876d;--c3:#7b4fb3;--c4:#a3781a;--c5:#b23a6e;--c6:#4b7f2b}\
@media(prefers-color-scheme:dark){:root{--paper:#12161d;--panel:#1a2029;--ink:#e7ebf2;--soft:#9aa5b5;\
--line:#2c3542;--c0:#f08a5b;--c1:#6cb4f2;--c2:#4fc9a9;--c3:#b592ee;--c4:#dcb558;--c5:#ee86b1;--c6:#97cd72}}";

/// What charts are made of.
const CHARTS: &str = "\
svg{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'Liberation Sans',sans-serif}\
svg text{fill:var(--ink);font-size:12.5px}svg .tick,svg .axis{fill:var(--soft);font-size:12px}\
svg .label{paint-order:stroke;stroke:var(--under,var(--paper));stroke-width:4px;stroke-linejoin:round}svg .label .tick{stroke-width:0}\
svg .grid{stroke:var(--line)}svg .base{stroke:var(--soft)}\
svg .lead{stroke:var(--soft);stroke-width:.8}svg .mean{stroke:var(--ink);stroke-dasharray:2 3}\
svg .mark{stroke:var(--under,var(--paper));stroke-width:1}svg .line{fill:none;stroke-width:2;stroke-linejoin:round}\
svg .frontier{fill:none;stroke:var(--soft);stroke-width:1.4;stroke-dasharray:5 4}\
svg .c0{--c:var(--c0)}svg .c1{--c:var(--c1)}svg .c2{--c:var(--c2)}svg .c3{--c:var(--c3)}\
svg .c4{--c:var(--c4)}svg .c5{--c:var(--c5)}svg .c6{--c:var(--c6)}\
svg .mark{fill:var(--c)}svg .line{stroke:var(--c)}";

/// What the page around them is made of.
const PAGE: &str = "\
*{box-sizing:border-box}body{margin:0;background:var(--paper);color:var(--ink);\
font:16px/1.55 system-ui,-apple-system,'Segoe UI',Roboto,'Liberation Sans',sans-serif}\
main{max-width:1180px;margin:0 auto;padding:40px 24px 64px}h1{font-size:30px;line-height:1.2;margin:0 0 6px}\
h2{font-size:19px;margin:40px 0 10px}p{margin:0 0 10px}.soft{color:var(--soft)}\
.headline{background:var(--panel);border-left:4px solid var(--c1);border-radius:6px;padding:16px 20px;margin:22px 0}\
.headline p{margin:0 0 6px}.headline p:first-child{font-size:18px;font-weight:600}.headline p:last-child{margin:0}\
.wide{overflow-x:auto}table{border-collapse:collapse;width:100%;font-size:14px;font-variant-numeric:tabular-nums}\
th,td{padding:8px 10px;border-bottom:1px solid var(--line);text-align:right;vertical-align:top;white-space:nowrap}\
th{color:var(--soft);font-weight:600;vertical-align:bottom;white-space:normal}\
th:first-child,td:first-child{text-align:left}tr.best td:first-child{font-weight:600}\
figure{--under:var(--panel);margin:0;background:var(--panel);border-radius:10px;padding:18px 18px 8px}\
figure svg{display:block;width:100%;height:auto}.grid2{display:grid;gap:18px}figcaption{font-weight:600;margin-bottom:6px}\
dl{display:grid;grid-template-columns:max-content 1fr;gap:4px 20px;margin:0;font-size:15px}dt{color:var(--soft)}dd{margin:0}\
pre{background:var(--panel);border-radius:8px;padding:12px 16px;overflow-x:auto;font-size:14px}\
.notes{font-size:14px;margin-top:14px}.notes p{margin:0 0 4px}";

/// The style of the page.
pub(super) fn page() -> String {
    format!("{COLOURS}{PAGE}{CHARTS}")
}

/// A chart as a file of its own, with its title and a background.
pub(super) fn standalone(chart: &Chart) -> String {
    let [width, height] = chart.size;
    let high = height + 34;
    html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox=(format!("0 -34 {width} {high}")) width=(width) height=(high) role="img" {
            title { (chart.title) }
            desc { (chart.says) }
            style { (maud::PreEscaped(format!("{COLOURS}{CHARTS}"))) }
            rect x="0" y="-34" width=(width) height=(high) style="fill:var(--paper)" {}
            text x="16" y="-10" style="font-size:16px;font-weight:600" { (chart.title) }
            (chart.body)
        }
    }
    .into_string()
}

#[cfg(test)]
mod tests {
    use super::super::{chart, comparison_of_test};
    use super::*;

    #[test]
    fn names_are_escaped_and_every_colour_has_a_day_and_a_night() {
        for chart in chart::all(&comparison_of_test()) {
            let text = standalone(&chart);
            assert!(text.contains("Burn's &lt;loader&gt;"), "{}", chart.name);
            assert!(!text.contains("<loader>") && !text.contains("NaN") && !text.contains("inf"));
        }
        for colour in [
            "paper", "panel", "ink", "soft", "line", "c0", "c1", "c2", "c3", "c4", "c5", "c6",
        ] {
            assert_eq!(
                COLOURS.matches(&format!("--{colour}:#")).count(),
                2,
                "{colour}"
            );
        }
    }
}
