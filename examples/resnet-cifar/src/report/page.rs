//! The page: one file that needs no network and no script.

use maud::{DOCTYPE, Markup, html};

use super::chart::Chart;
use super::{Comparison, machine, style, words};
use crate::compare::headline;

/// Everything there is to see of a comparison.
pub(super) fn page(comparison: &Comparison, charts: &[Chart]) -> String {
    let rows = &comparison.rows;
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { "burn-prefetch beside Burn's own loader" }
                style { (maud::PreEscaped(style::page())) }
            }
            body {
                main {
                    h1 { "burn-prefetch beside Burn's own loader" }
                    p class="soft" { (words::title(rows, comparison.swept)) }
                    @if let Some(text) = headline(rows) {
                        section class="headline" { @for line in text.lines() { p { (line) } } }
                    }
                    h2 { "Figures" }
                    (table(comparison))
                    h2 { "Charts" }
                    div class="grid2" { @for chart in charts { (figure(chart)) } }
                    h2 { "Machine and versions" }
                    dl { @for (fact, value) in machine::facts() { dt { (fact) } dd { (value) } } }
                    h2 { "Made by" }
                    pre { code { (comparison.command) } }
                    p class="soft" { "In " (words::duration(comparison.took)) ". The same figures: rows.json, report.md." }
                }
            }
        }
    }
    .into_string()
}

fn table(comparison: &Comparison) -> Markup {
    let Comparison { rows, swept, .. } = comparison;
    html! {
        div class="wide" { table {
            thead { tr { @for heading in words::headings(rows) { th { (heading) } } } }
            tbody {
                @for (row, cells) in words::lines(rows) {
                    @let best = *swept && row.on_frontier;
                    tr class=[best.then_some("best")] {
                        @for (at, cell) in cells.iter().enumerate() {
                            td { (cell) @if best && at == 0 { " ◆" } }
                        }
                    }
                }
            }
        } }
        div class="soft notes" { @for line in words::legend(rows, *swept) { p { (line) } } }
    }
}

fn figure(chart: &Chart) -> Markup {
    let [width, height] = chart.size;
    html! {
        figure {
            figcaption { (chart.title) }
            svg viewBox=(format!("0 0 {width} {height}")) role="img" aria-label=(chart.says) { (chart.body) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{chart, comparison_of_test};
    use super::*;

    #[test]
    fn the_page_holds_everything_and_asks_nobody() {
        let comparison = comparison_of_test();
        let text = page(&comparison, &chart::all(&comparison));
        for wanted in [
            "<!DOCTYPE html>",
            "Burn's &lt;loader&gt;",
            "ours, 2",
            "resnet-cifar compare",
            "rustc 1.",
            "prefers-color-scheme",
        ] {
            assert!(text.contains(wanted), "{wanted}");
        }
        assert_eq!(text.matches("<svg").count(), 4);
        for other in [
            "http", "src=", "href=", "url(", "@import", "<script", "<loader>",
        ] {
            assert!(!text.contains(other), "{other}");
        }
    }
}
