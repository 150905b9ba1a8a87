//! What half the prefetch costs: the one thing that a comparison is made for.

use indicatif::HumanBytes;

use super::Row;

const ELSEWHERE: &str = "Reported elsewhere for the same change, on ResNet-50 and CIFAR-100 with 4 \
                         workers: 51 % less memory for 3 % of the speed.";

/// `prefetch_factor` 2 to 1 in batches, speed and bytes, with Burn's default and two batches in all
/// beside it, a line each; `None` where these four were not compared, or nothing was made ahead.
pub(crate) fn headline(rows: &[Row]) -> Option<String> {
    let find = |name| rows.iter().find(|row| row.run.name == name);
    let (two, one) = (find("prefetch_factor(2)")?, find("prefetch_factor(1)")?);
    let (burn, total) = (find("Burn's loader")?, find("prefetch(2)")?);
    let ahead = two.run.workers > 0;
    ahead.then(|| {
        let lines = [
            halved(two, one),
            in_bytes(two, one),
            beside([burn, total], two),
            ELSEWHERE.to_owned(),
        ];
        lines.join("\n")
    })
}

fn halved(two: &Row, one: &Row) -> String {
    let (before, after) = (two.run.peak_batches_alive, one.run.peak_batches_alive);
    let halved = if 2 * after == before {
        "exactly half"
    } else {
        "not half"
    };
    let apart = 100.0 * two.spread().max(one.spread());
    let noise = match two.images_per_second_of_runs.len() {
        1 => "one run cannot say how much is noise".to_owned(),
        _ => format!("runs of one setting lie {apart:.1} % apart"),
    };
    format!(
        "prefetch_factor 2 to 1: {before} batches alive become {after}, {halved}; images/s {} (goal: at \
         most 1 % less; {noise}).",
        change(two, one)
    )
}

fn in_bytes(two: &Row, one: &Row) -> String {
    format!(
        "In bytes: {} become {}, the pictures of batches in the making among them, which no prefetch \
         setting changes.",
        bytes(two),
        bytes(one)
    )
}

fn beside([burn, total]: [&Row; 2], two: &Row) -> String {
    format!(
        "Beside it: Burn's default holds {} batches, {}; prefetch(2), two batches in all, {}, images/s {} \
         against prefetch_factor(2).",
        burn.run.peak_batches_alive,
        bytes(burn),
        bytes(total),
        change(two, total)
    )
}

fn bytes(row: &Row) -> String {
    HumanBytes(u64::try_from(row.run.peak_batch_bytes).unwrap_or(u64::MAX)).to_string()
}

fn change(from: &Row, to: &Row) -> String {
    let ratio = to.run.images_per_second / from.run.images_per_second.max(1e-9);
    format!("{:+.1} %", 100.0 * (ratio - 1.0))
}

#[cfg(test)]
mod tests {
    use super::super::row::tests::row;
    use super::*;

    fn rows(alive: usize) -> [Row; 4] {
        let mut rows = [
            row("Burn's loader", 100.0, 80 << 20),
            row("prefetch_factor(2)", 100.0, 4 << 20),
            row("prefetch_factor(1)", 99.0, 2 << 20),
            row("prefetch(2)", 98.0, 2 << 20),
        ];
        rows[0].run.peak_batches_alive = 102;
        rows[1].run.peak_batches_alive = 4;
        rows[2].run.peak_batches_alive = alive;
        rows
    }

    #[test]
    fn half_is_called_half_only_where_it_is() {
        let text = headline(&rows(2)).unwrap();
        assert!(
            text.contains("4 batches alive become 2, exactly half"),
            "{text}"
        );
        assert!(text.contains("exactly half; images/s -1.0 %"), "{text}");
        assert!(text.contains("4.00 MiB become 2.00 MiB"), "{text}");
        assert!(text.contains("holds 102 batches, 80.00 MiB"), "{text}");
        assert!(headline(&rows(3)).unwrap().contains("become 3, not half"));
    }

    #[test]
    fn where_nothing_is_made_ahead_nothing_is_halved() {
        let mut rows = rows(2);
        rows[1].run.workers = 0;
        assert_eq!(headline(&rows), None);
    }

    #[test]
    fn other_contenders_have_no_headline() {
        assert_eq!(headline(&rows(2)[1..]), None);
    }
}
