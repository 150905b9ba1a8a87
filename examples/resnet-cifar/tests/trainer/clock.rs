//! A step's time consists of what a training does, and of nothing that the measurement does.

use crate::support::contender;

#[test]
fn what_a_simulated_step_leaves_of_the_rate_is_waiting_and_nothing_else() {
    // So many pictures that to look at each float takes far longer than the step.
    let row = contender(&[
        "--images",
        "8192",
        "--batch-size",
        "4096",
        "--steps",
        "4",
        "--step-ms",
        "20",
        "--workers",
        "2",
    ]);
    let share = |part: &str| row[format!("{part}_share")].as_f64().unwrap();
    // The rate is the median step's.
    let seconds = 4096.0 / row["images_per_second"].as_f64().unwrap();
    let rest = (1.0 - share("wait")) * seconds;
    assert!(rest < 3.0 * 0.020, "{rest} s beside waiting: {row}");
    assert!(seconds >= 0.020, "{seconds} s");
    let sum = share("wait") + share("step") + share("drop");
    assert!((sum - 1.0).abs() < 1e-9, "{row}");
}
