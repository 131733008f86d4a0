use demur_accounting::Account;
use demur_exact::Rational;
fn main() {
    let text = std::fs::read_to_string("/work/main/crates/accounting/tests/data/reference.json").unwrap();
    let cases: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
    let filter = std::env::args().nth(1).unwrap_or_default();
    let mut bad = 0;
    for case in &cases {
        let s = |k: &str| case[k].as_str().unwrap_or("").to_owned();
        let losses = s("losses");
        if !losses.contains(&filter) {
            continue;
        }
        let t = std::time::Instant::now();
        let account = Account::of(&losses.parse().unwrap());
        let q = |k: &str| s(k).parse::<Rational>().unwrap();
        let mut run = |name: String,
                       truth: Rational,
                       found: Result<(demur_accounting::Bounds, String), String>| {
            let el = t.elapsed();
            match found {
                Err(e) => {
                    bad += 1;
                    println!("ERR   {losses} {name}: {e} {el:?}")
                }
                Ok((b, m)) => {
                    let up = Rational::try_from(b.upper).map(|x| &x - &truth);
                    let lo = Rational::try_from(b.lower).map(|x| &truth - &x);
                    let rel = |d: &Rational| if truth.is_zero() { d.to_f64() } else { (d / &truth).to_f64() };
                    let (u, l) = match (up, lo) {
                        (Ok(u), Ok(l)) => (rel(&u), rel(&l)),
                        _ => (f64::NAN, f64::NAN),
                    };
                    let limit = if s("kind") == "closed" { 1e-9 } else { 1e-8 };
                    let tag = if u < 0.0 || l < 0.0 || u.is_nan() {
                        bad += 1;
                        "WRONG"
                    } else if u > limit {
                        bad += 1;
                        "LOOSE"
                    } else {
                        "ok   "
                    };
                    if tag != "ok   " || el.as_millis() > 20 || !filter.is_empty() {
                        println!(
                            "{tag} {losses} {name} {m}: up {u:.1e} low {l:.1e} {el:?}  [{:e},{:e}] truth {:e}",
                            b.lower,
                            b.upper,
                            truth.to_f64()
                        );
                    }
                }
            }
        };
        let account = match account {
            Ok(a) => a,
            Err(e) => {
                run("of".into(), Rational::zero(), Err(e.to_string()));
                continue;
            }
        };
        let tidy = |a: Result<demur_accounting::Answer, demur_accounting::AccountingError>| {
            a.map(|a| (a.bounds, a.method.to_string())).map_err(|e| e.to_string())
        };
        if !case["order"].is_null() {
            match account.renyi(&q("order")) {
                Ok([a, b]) => {
                    run(format!("order {}", s("order")), q("renyi"), Ok((a, "renyi".into())));
                    run(
                        format!("order {} other", s("order")),
                        q(if case["renyi_other"].is_null() { "renyi" } else { "renyi_other" }),
                        Ok((b, "renyi".into())),
                    );
                }
                Err(e) => run("renyi".into(), Rational::zero(), Err(e.to_string())),
            }
        } else if s("find") == "delta" {
            run(format!("e={}", s("epsilon")), q("delta"), tidy(account.delta(&q("epsilon"))));
        } else {
            run(format!("d={}", s("delta")), q("epsilon"), tidy(account.epsilon(&q("delta"))));
        }
    }
    println!("{} cases, {bad} bad", cases.len());
}
