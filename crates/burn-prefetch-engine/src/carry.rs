//! What a hand does for a pass: it fetches, assembles and uploads, and brings back what it has.

use crate::assembly::{Finished, Pieces};
use crate::claim::{Claim, Returned, Took, Which};
use crate::error::{LoadError, Stage};
use crate::feed::Feed;
use crate::source::{Assembled, Made, Outcome, Source};
use crate::staff::{Hand, Serve};
use crate::stats::Work;
use crate::sync::atomic::Ordering::SeqCst;
use crate::sync::{Moment, came_true_soon};
use crate::ticket::Ticket;
use crate::unwind::shield;

impl<S: Source> Feed<S> {
    /// Fetches one part and, where it was the last of its batch, assembles the batch. Returns what
    /// to do next, if the hand stays.
    fn carry(&self, claim: Claim<S::Piece>, hand: &Hand<'_>) -> Option<Claim<S::Piece>> {
        let Claim {
            number,
            which,
            mut piece,
            within,
            measured,
            slow_items,
            ..
        } = claim;
        self.job().prepare(number, hand);
        let begun = measured.map(|_| Moment::now());
        let slow = slow_items && measured.is_some();
        let failure = self.job().fetch((number, &within, slow), &mut piece, hand);
        let fetch = begun.map(|begun| (within.len(), begun.elapsed()));
        let took = Took {
            fetch,
            ..Took::default()
        };

        let part = match which {
            Which::Nth(part) => part,
            Which::Whole(ticket) => {
                let finished = Finished {
                    number,
                    pieces: Pieces::whole(piece),
                    failure: failure.map(|failure| failure.error),
                };
                return self.complete((finished, ticket), (took, measured), hand);
            }
        };
        self.count(&took, measured, hand);
        hand.outside();
        let mut desk = self.desk.lock();
        match desk.give_back((number, part, piece), failure, &took) {
            Returned::Waiting => self.claim_more(&mut desk, hand),
            Returned::Unwanted(piece, ticket) => {
                drop(desk);
                self.job().dispose(number, [piece], hand);
                drop(ticket);
                None
            }
            Returned::Complete(finished, ticket) => {
                drop(desk);
                self.complete((finished, ticket), (Took::default(), measured), hand)
            }
        }
    }

    fn complete(
        &self,
        (finished, ticket): (Finished<S::Piece>, Ticket),
        (mut took, measured): (Took, Option<u32>),
        hand: &Hand<'_>,
    ) -> Option<Claim<S::Piece>> {
        let number = finished.number;
        if self.over.load(SeqCst) {
            self.job().dispose(number, finished.pieces, hand);
            return None;
        }
        let begun = measured.map(|_| Moment::now());
        let assembled = self.job().assemble((finished, ticket), hand);
        if self.uploader().is_some() {
            took.assembly = begun.filter(|_| assembled.is_ok()).map(Moment::elapsed);
            self.count(&took, measured, hand);
            hand.outside();
            let mut desk = self.desk.lock();
            let (unwanted, wake) = desk.dock(number, assembled, &took);
            let next = self.claim_more(&mut desk, hand);
            drop(desk);
            if wake {
                self.ready.notify_one();
            }
            self.wake_uploader();
            if unwanted.is_some() {
                self.job().dispose(number, unwanted, hand);
            }
            return next;
        }
        let assembled_at = measured.map(|_| Moment::now());
        let outcome = self.job().upload(number, assembled, hand);
        took.upload = assembled_at
            .filter(|_| outcome.is_ok())
            .map(Moment::elapsed);
        took.assembly = begun.filter(|_| outcome.is_ok()).map(Moment::elapsed);
        self.count(&took, measured, hand);
        hand.outside();
        let (mut desk, put) = self.put(number, outcome, &took);
        let next = self.claim_more(&mut desk, hand);
        drop(desk);
        self.tell(put, hand);
        next
    }

    /// Uploads what may be uploaded now, while nobody else wants the hand; `false` when there is
    /// nothing.
    pub(crate) fn upload(&self, hand: &Hand<'_>) -> bool {
        let mut desk = self.desk.lock();
        let mut served = false;
        while let Some((number, assembled)) = desk.claim_upload(&self.returned) {
            drop(desk);
            served = true;
            shield(|| self.upload_one((number, assembled), hand)).unwrap_or_else(|message| {
                self.break_off((number, Stage::Upload), message, hand);
            });
            if !hand.may_stay() {
                return served;
            }
            desk = self.desk.lock();
        }
        served
    }

    fn upload_one(&self, (number, assembled): (usize, Assembled<S>), hand: &Hand<'_>) {
        let begun = Moment::now();
        let mut outcome = self.job().upload(number, assembled, hand);
        if outcome.is_ok() {
            outcome.ticket.uploaded(begun.elapsed());
        }
        hand.outside();
        self.hand_over(number, outcome, hand);
    }

    /// Puts a batch of which nothing was measured, and does what follows.
    fn hand_over(&self, number: usize, outcome: Outcome<S>, hand: &Hand<'_>) {
        let (desk, put) = self.put(number, outcome, &Took::default());
        drop(desk);
        self.tell(put, hand);
    }

    fn count(&self, took: &Took, measured: Option<u32>, hand: &Hand<'_>) {
        let Some(batches) = measured else { return };
        let upload = took.upload.unwrap_or_default();
        let work = Work {
            fetch: took.fetch.map(|(_, took)| took).unwrap_or_default(),
            assemble: took.assembly.unwrap_or_default().saturating_sub(upload),
            upload,
        };
        let tally = &self.job().account.tally;
        tally.worked(hand.worker, work, batches);
    }

    fn serve_while_there_is_work(&self, hand: &Hand<'_>) -> bool {
        let mut next = self.claim(&mut self.desk.lock());
        let served = next.is_some();
        while let Some(claim) = next {
            if claim.more {
                hand.wake_another();
            }
            let number = claim.number;
            next = shield(|| self.carry(claim, hand)).unwrap_or_else(|message| {
                self.break_off((number, Stage::HandOver), message, hand);
                None
            });
        }
        served
    }

    /// What unwound between the steps of a batch takes the batch's place, and costs no worker.
    fn break_off(&self, (number, stage): (usize, Stage), message: String, hand: &Hand<'_>) {
        hand.outside();
        let lost = self.desk.lock().lose(number);
        if let Some(ticket) = lost.error {
            // The uploader has no number: there is one.
            let worker = hand.worker.filter(|_| stage != Stage::Upload);
            let at = self.job().place(stage, number, worker);
            let error = Box::new(LoadError::Panic { at, message });
            self.hand_over(number, Made::failed(error, ticket), hand);
        }
        self.job().dispose(number, lost.pieces, hand);
        drop(lost.unwanted);
    }

    fn serve_while_places_come(&self, hand: &Hand<'_>) -> bool {
        let mut served = false;
        while self.serve_while_there_is_work(hand) {
            served = true;
            if !self.place_comes_soon(hand) {
                break;
            }
        }
        served
    }

    /// Whether the reader frees a place within microseconds, when that is likely and no other hand
    /// is there to fill it.
    fn place_comes_soon(&self, hand: &Hand<'_>) -> bool {
        let alone = self.hands.load(SeqCst) == 1;
        if !alone || !self.is_cheap() || self.is_exhausted() || !hand.may_stay() {
            return false;
        }
        let before = self.returned.load(SeqCst);
        came_true_soon(|| self.returned.load(SeqCst) != before)
    }
}

impl<S: Source> Serve for Feed<S> {
    fn serve(&self, hand: &Hand<'_>) -> bool {
        let mut served = false;
        loop {
            let returned = self.returned.load(SeqCst);
            self.hands.fetch_add(1, SeqCst);
            served |= self.serve_while_places_come(hand);
            self.hands.fetch_sub(1, SeqCst);
            // Of a place freed before this the reader may have told nobody, for here was a hand.
            if served || self.returned.load(SeqCst) == returned {
                return served;
            }
        }
    }

    fn waiting_since(&self) -> usize {
        self.waiting_since()
    }

    fn alarm(&self) {
        self.alarm();
    }
}
