use demur_accounting::Account;
fn main() {
    let a: Vec<_> = std::env::args().collect();
    for round in 0..2 {
        let t = std::time::Instant::now();
        let out = Account::of(&a[1].parse().unwrap()).and_then(|account| match a[2].strip_prefix("e=") {
            Some(e) => account.delta(&e.parse().unwrap()),
            None => account.epsilon(&a[2].parse().unwrap()),
        });
        let t = t.elapsed();
        if round == 1 {
            match out {
                Ok(x) => println!("{:?} {:.1e} {} {t:?}", x.bounds, x.bounds.relative_width(), x.method),
                Err(e) => println!("{e} {t:?}"),
            }
        }
    }
}
