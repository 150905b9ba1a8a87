//! What chance does, for the tests that something else does the same.

/// A count as a number of the real line.
#[expect(clippy::cast_precision_loss, reason = "counts here are far below 2^52")]
pub(crate) fn real(count: usize) -> f64 {
    count as f64
}

/// Fails if `seen` differs from `expected` by more than chance does once in a million times.
pub(crate) fn assert_chance(seen: &[usize], expected: &[f64], what: &str) {
    assert_eq!(seen.len(), expected.len());
    let distance: f64 = seen
        .iter()
        .zip(expected)
        .map(|(&seen, e)| (real(seen) - e).powi(2) / e)
        .sum();
    // E. B. Wilson and M. M. Hilferty's approximation; 4.753 standard deviations are 10^-6.
    let freedom = real(seen.len() - 1);
    let spread = 2.0 / (9.0 * freedom);
    let limit = freedom * (1.0 - spread + 4.753 * spread.sqrt()).powi(3);
    // Shown with `--nocapture`.
    eprintln!("{what}: chi-square {distance:.1}, limit {limit:.1}");
    assert!(
        distance < limit,
        "{what}: chi-square {distance:.1}, limit {limit:.1}"
    );
}

/// Fails if `seen` is five standard deviations or more from `expected`.
pub(crate) fn assert_near(seen: f64, expected: f64, deviation: f64, what: &str) {
    let z = (seen - expected) / deviation;
    eprintln!("{what}: {z:.1} deviations, limit 5");
    assert!(
        z.abs() < 5.0,
        "{what}: {seen} instead of {expected}, {z:.1} deviations"
    );
}
