//! The pairs of an order and an ε that make up `renyi(2: 0.1, 8: 0.5)`.

use super::Reader;
use super::arguments::accept;
use crate::Error;
use crate::privacy_loss::language::MAX_POINTS;
use crate::privacy_loss::{PrivacyLoss, RenyiPoint};

const USAGE: &str = "renyi(order: epsilon, …)";

impl Reader<'_> {
    /// `(order: epsilon, …)`, after the name, which stands at a place.
    pub(super) fn renyi(&mut self, at: usize) -> Result<PrivacyLoss, Error> {
        self.cursor.expect('(', "`(` after the name of a loss")?;
        if self.cursor.eat(')') {
            return Err(self.cursor.refuse(at, "renyi needs an order and its epsilon", USAGE));
        }
        let (mut points, mut places) = (vec![], vec![at]);
        loop {
            points.push(self.point(points.len(), &mut places)?);
            if !self.cursor.eat(',') {
                break;
            }
        }
        self.cursor.expect(')', &format!("`,` or `)` in {USAGE}"))?;
        let loss = PrivacyLoss::Renyi { points };
        for (parameter, place) in loss.parameters().iter().zip(places) {
            accept(&self.cursor, place, "renyi", parameter)?;
        }
        Ok(loss)
    }

    /// `order: epsilon`, behind as many; both places are added.
    fn point(&mut self, before: usize, places: &mut Vec<usize>) -> Result<RenyiPoint, Error> {
        let at = self.cursor.here();
        if before == MAX_POINTS {
            let allowed = format!("up to {MAX_POINTS} in one loss");
            return Err(self.cursor.refuse(at, "there are too many orders", &allowed));
        }
        places.push(at);
        let order = self.cursor.number()?;
        self.cursor.expect(':', &format!("`:` between an order and its epsilon in {USAGE}"))?;
        places.push(self.cursor.here());
        let epsilon = self.cursor.number()?;
        Ok(RenyiPoint { order, epsilon })
    }
}
