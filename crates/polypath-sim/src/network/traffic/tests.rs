//! Tests of single sources: rates, reproducibility, self-similarity.

use super::*;

const BURSTS: OnOff =
    OnOff { shape: 1.5, on: Duration::from_millis(500), off: Duration::from_millis(500) };

fn plan(name: &str, pattern: Pattern, interval: f64) -> TrafficPlan {
    TrafficPlan {
        name: name.to_owned(),
        way: vec![LinkId(0)],
        size: 1500,
        interval,
        start: Time::ZERO,
        pattern,
    }
}

/// Number of packets in each of `bins` seconds, from all sources together.
fn packets(pattern: Pattern, sources: u32, interval: f64, bins: usize, seed: u64) -> Vec<f64> {
    let mut counts = vec![0.0; bins];
    for n in 0..sources {
        let mut source = Source::new(plan(&format!("test/{n}"), pattern, interval), seed);
        let mut at = 0u64;
        loop {
            at = at.saturating_add(source.next_gap().as_nanos() as u64);
            let Some(bin) = counts.get_mut((at / 1_000_000_000) as usize) else { break };
            *bin += 1.0;
        }
    }
    counts
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn variance(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / (values.len() - 1) as f64
}

/// Mean and half the width of its 99 % interval (Student's t with 9 degrees of freedom: ten seeds).
fn interval_of_ten(values: &[f64]) -> (f64, f64) {
    assert_eq!(values.len(), 10);
    (mean(values), 3.25 * (variance(values) / 10.0).sqrt())
}

/// Slope of the least-squares line through the points.
fn slope(points: &[(f64, f64)]) -> f64 {
    let n = points.len() as f64;
    let (x, y) = points.iter().fold((0.0, 0.0), |(x, y), p| (x + p.0 / n, y + p.1 / n));
    let (above, below) = points
        .iter()
        .fold((0.0, 0.0), |(a, b), p| (a + (p.0 - x) * (p.1 - y), b + (p.0 - x) * (p.0 - x)));
    above / below
}

/// Block lengths in seconds: well above the mean periods, where the asymptotic law holds, and at
/// most a fiftieth of the run, so that each variance has at least fifty blocks.
const SCALES: [usize; 7] = [4, 8, 16, 32, 64, 128, 200];

/// The variance of the means of blocks of m seconds decreases as m^(2H - 2).
fn hurst_by_variance(counts: &[f64]) -> f64 {
    let point = |&m: &usize| {
        let blocks: Vec<f64> = counts.chunks_exact(m).map(mean).collect();
        (libm::log(m as f64), libm::log(variance(&blocks)))
    };
    1.0 + slope(&SCALES.iter().map(point).collect::<Vec<_>>()) / 2.0
}

/// The rescaled range of blocks of m seconds increases as m^H.
fn hurst_by_range(counts: &[f64]) -> f64 {
    let rescaled = |block: &[f64]| {
        let middle = mean(block);
        let (mut sum, mut low, mut high) = (0.0, 0.0f64, 0.0f64);
        for value in block {
            sum += value - middle;
            (low, high) = (low.min(sum), high.max(sum));
        }
        (high - low) / variance(block).sqrt()
    };
    let point = |&m: &usize| {
        let ranges: Vec<f64> = counts.chunks_exact(m).map(rescaled).collect();
        (libm::log(m as f64), libm::log(mean(&ranges)))
    };
    slope(&[64, 128, 256, 512, 1024, 2048].iter().map(point).collect::<Vec<_>>())
}

/// Both estimates of the Hurst parameter, each with its interval over ten seeds.
fn hurst(shape: f64) -> [(f64, f64); 2] {
    let pattern = Pattern::Pareto(OnOff { shape, ..BURSTS });
    let runs = (1..=10).map(|seed| packets(pattern, 32, 5e7, 10_000, seed));
    let runs: Vec<Vec<f64>> = runs.collect();
    [hurst_by_variance, hurst_by_range]
        .map(|estimate| interval_of_ten(&runs.iter().map(|run| estimate(run)).collect::<Vec<_>>()))
}

#[test]
fn pareto_bursts_of_shape_one_and_a_half_are_self_similar() {
    // H = (3 - 1.5) / 2. Both estimators are asymptotic: their own bias at these scales is up to
    // 0.02 (Taqqu, Teverovsky, Willinger 1995), which is added to the 99 % interval of ten seeds.
    for (name, (h, half)) in ["variance", "R/S"].into_iter().zip(hurst(1.5)) {
        assert!(half < 0.06, "{name}: {h} +- {half} decides nothing");
        assert!((h - 0.75).abs() <= half + 0.02, "{name}: H = {h} +- {half}");
    }
}

#[test]
fn bursts_of_finite_variance_are_not() {
    for (name, (h, half)) in ["variance", "R/S"].into_iter().zip(hurst(3.0)) {
        assert!(h + half < 0.6, "{name}: H = {h} +- {half}, although it has to be near 0.5");
    }
}

#[test]
fn periods_are_pareto_distributed() {
    let mut dice = Random::named(1, "periods");
    let n = 200_000;
    let mut periods: Vec<f64> = (0..n).map(|_| BURSTS.period(BURSTS.on, &mut dice)).collect();
    periods.sort_by(f64::total_cmp);
    let minimum = 0.5e9 / 3.0;
    assert!(periods[0] >= minimum && periods[0] < minimum * 1.001);
    // Kolmogorov-Smirnov at 1 %, against P(X <= x) = 1 - (minimum / x)^1.5.
    let distance = periods.iter().enumerate().map(|(i, x)| {
        let below = 1.0 - (minimum / x) * (minimum / x).sqrt();
        (below - i as f64 / f64::from(n)).abs()
    });
    let largest = distance.fold(0.0, f64::max);
    assert!(largest < 1.63 / f64::from(n).sqrt(), "{largest}");
}

#[test]
fn rates_are_exact_in_the_mean() {
    // 32 sources of 20 packets/s in bursts, half of the time; ten seeds of 1000 s.
    let total = |seed| mean(&packets(Pattern::Pareto(BURSTS), 32, 5e7, 1000, seed));
    let (rate, half) = interval_of_ten(&(1..=10).map(total).collect::<Vec<_>>());
    assert!(half < 16.0, "{rate} +- {half}");
    assert!((rate - 320.0).abs() < half, "{rate} +- {half}");
    // Bursts shorter than the packet interval give the same mean rate.
    let short = OnOff { on: Duration::from_millis(5), off: Duration::from_millis(5), ..BURSTS };
    let total = |seed| mean(&packets(Pattern::Pareto(short), 32, 5e7, 1000, seed));
    let (rate, half) = interval_of_ten(&(1..=10).map(total).collect::<Vec<_>>());
    assert!(half < 16.0 && (rate - 320.0).abs() < half, "{rate} +- {half}");
    // Without bursts nothing is random: 3 packets in ten milliseconds, exact to the packet.
    let counts = packets(Pattern::Constant, 1, 1e7 / 3.0, 100, 1);
    assert!(counts.iter().all(|&n| n == 300.0), "{counts:?}");
}

#[test]
fn a_source_has_its_own_dice() {
    let gaps = |name: &str, seed| {
        let mut source = Source::new(plan(name, Pattern::Pareto(BURSTS), 1e7), seed);
        (0..1000).map(|_| source.next_gap()).collect::<Vec<_>>()
    };
    assert_eq!(gaps("a", 1), gaps("a", 1));
    assert_ne!(gaps("a", 1), gaps("a", 2));
    assert_ne!(gaps("a", 1), gaps("b", 1));
    // Pinned: the results of runs depend on this sum, on every machine.
    let sum: Duration = gaps("a", 1).iter().sum();
    assert_eq!(sum, Duration::from_nanos(16_996_857_893));
}
