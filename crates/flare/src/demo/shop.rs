//! In: a seed. Out: what happens in a small shop, one change after another: orders move through their states, products
//! change in price and stock, carts come and go. Pure: who sends the changes, and when, is elsewhere.
//!
//! Bounds: [`PRODUCTS`], [`MOST_ORDERS`] and [`MOST_CARTS`]; the oldest order is archived, the oldest cart abandoned,
//! before there are more.

use std::collections::{BTreeMap, VecDeque};

use flare_core::door::Chance;
use serde_json::{Value, json};

use super::thing::{Kind, Thing};

/// How many products there are.
pub const PRODUCTS: u32 = 24;

/// How many orders are kept, those that have arrived included.
pub const MOST_ORDERS: usize = 120;

/// How many carts are open.
pub const MOST_CARTS: usize = 20;

/// A product with fewer pieces than this is running low.
pub const LOW: u64 = 5;

const NAMES: [&str; PRODUCTS as usize] = [
    "kettle", "teapot", "mug", "saucer", "spoon", "sieve", "jar", "tray", "lamp", "candle", "basket",
    "blanket", "cushion", "curtain", "mirror", "clock", "vase", "frame", "broom", "bucket", "hammer", "saw",
    "ladder", "rope",
];

/// The states of an order, in order.
const STATES: [&str; 5] = ["placed", "paid", "packed", "shipped", "delivered"];

/// What became of a document.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Which document.
    pub thing: Thing,
    /// Its new content; nothing when it is gone.
    pub document: Option<Value>,
}

/// The shop.
#[derive(Debug)]
pub struct Shop {
    chance: Chance,
    products: Vec<Product>,
    orders: BTreeMap<u32, Order>,
    carts: BTreeMap<u32, Cart>,
    next: u32,
    /// What has happened and was not asked for yet. Bound: what one event changes, four documents.
    pending: VecDeque<Change>,
}

#[derive(Debug)]
struct Product {
    version: u64,
    /// In cents, which add up exactly.
    price: u64,
    stock: u64,
}

#[derive(Debug)]
struct Order {
    version: u64,
    state: usize,
    product: u32,
    quantity: u64,
    total: u64,
}

#[derive(Debug)]
struct Cart {
    version: u64,
    product: u32,
    quantity: u64,
}

impl Shop {
    /// A shop that opens, with everything on its shelves. Its first changes are its products.
    pub fn open(seed: u64) -> Shop {
        let chance = Chance::from_seed(seed);
        let mut shop = Shop {
            products: Vec::new(),
            orders: BTreeMap::new(),
            carts: BTreeMap::new(),
            next: 1000,
            pending: VecDeque::new(),
            chance,
        };
        for number in 0..PRODUCTS {
            let product =
                Product { version: 1, price: 500 + 50 * shop.below(100), stock: 2 + shop.below(20) };
            shop.products.push(product);
            shop.tell_product(number);
        }
        shop
    }

    /// The next change.
    pub fn next_change(&mut self) -> Change {
        loop {
            if let Some(change) = self.pending.pop_front() {
                return change;
            }
            self.something_happens();
        }
    }

    fn something_happens(&mut self) {
        match self.below(100) {
            0..40 => self.an_order_goes_on(),
            40..64 => self.a_cart_is_filled(),
            64..74 => self.a_cart_is_bought(),
            74..77 => self.a_cart_is_abandoned(),
            77..95 => self.a_price_changes(),
            _ => self.goods_arrive(),
        }
    }

    fn an_order_goes_on(&mut self) {
        let last = STATES.len() - 1;
        let open: Vec<u32> =
            self.orders.iter().filter(|(_, order)| order.state < last).map(|(number, _)| *number).collect();
        let Some(number) = self.pick(&open) else { return };
        if let Some(order) = self.orders.get_mut(&number) {
            order.version += 1;
            order.state += 1;
        }
        self.tell_order(number);
    }

    fn a_cart_is_filled(&mut self) {
        let carts: Vec<u32> = self.carts.keys().copied().collect();
        let number = match self.pick(&carts) {
            Some(number) if self.below(2) == 0 => number,
            _ => {
                if self.carts.len() == MOST_CARTS {
                    self.a_cart_is_abandoned();
                }
                let (product, number) = (self.below(u64::from(PRODUCTS)) as u32, self.number());
                self.carts.insert(number, Cart { version: 0, product, quantity: 0 });
                number
            }
        };
        if let Some(cart) = self.carts.get_mut(&number) {
            cart.version += 1;
            cart.quantity += 1;
        }
        self.tell_cart(number);
    }

    /// The cart goes, an order comes, and the product is fewer.
    fn a_cart_is_bought(&mut self) {
        let carts: Vec<u32> = self.carts.keys().copied().collect();
        let Some(number) = self.pick(&carts) else { return };
        let Some(cart) = self.carts.remove(&number) else { return };
        self.gone(Kind::Cart, number);
        let product = &mut self.products[cart.product as usize];
        let quantity = cart.quantity.min(product.stock);
        if quantity == 0 {
            return;
        }
        product.version += 1;
        product.stock -= quantity;
        let total = quantity * product.price;
        self.tell_product(cart.product);
        if self.orders.len() == MOST_ORDERS
            && let Some((archived, _)) = self.orders.pop_first()
        {
            self.gone(Kind::Order, archived);
        }
        let number = self.number();
        self.orders.insert(number, Order { version: 1, state: 0, product: cart.product, quantity, total });
        self.tell_order(number);
    }

    fn a_cart_is_abandoned(&mut self) {
        if let Some((number, _)) = self.carts.pop_first() {
            self.gone(Kind::Cart, number);
        }
    }

    fn a_price_changes(&mut self) {
        let number = self.below(u64::from(PRODUCTS)) as u32;
        let price = 500 + 50 * self.below(100);
        let product = &mut self.products[number as usize];
        product.version += 1;
        product.price = price;
        self.tell_product(number);
    }

    fn goods_arrive(&mut self) {
        let scarce: Vec<u32> =
            (0..PRODUCTS).filter(|number| self.products[*number as usize].stock < LOW).collect();
        let Some(number) = self.pick(&scarce) else { return };
        let quantity = 5 + self.below(15);
        let product = &mut self.products[number as usize];
        product.version += 1;
        product.stock += quantity;
        self.tell_product(number);
    }

    fn tell_product(&mut self, number: u32) {
        let Product { version, price, stock } = &self.products[number as usize];
        let document =
            json!({"version": version, "name": NAMES[number as usize], "price": price, "stock": stock});
        self.told(Kind::Product, number, document);
    }

    fn tell_order(&mut self, number: u32) {
        let Some(Order { version, state, product, quantity, total }) = self.orders.get(&number) else {
            return;
        };
        let document = json!({"version": version, "state": STATES[*state], "product": NAMES[*product as usize],
            "quantity": quantity, "total": total});
        self.told(Kind::Order, number, document);
    }

    fn tell_cart(&mut self, number: u32) {
        let Some(Cart { version, product, quantity }) = self.carts.get(&number) else { return };
        let document = json!({"version": version, "product": NAMES[*product as usize], "quantity": quantity});
        self.told(Kind::Cart, number, document);
    }

    fn told(&mut self, kind: Kind, number: u32, document: Value) {
        self.pending.push_back(Change { thing: Thing { kind, number }, document: Some(document) });
    }

    fn gone(&mut self, kind: Kind, number: u32) {
        self.pending.push_back(Change { thing: Thing { kind, number }, document: None });
    }

    /// Orders and carts share one row of numbers, and none is used twice.
    fn number(&mut self) -> u32 {
        self.next += 1;
        self.next
    }

    fn pick(&self, among: &[u32]) -> Option<u32> {
        if among.is_empty() { None } else { Some(among[self.below(among.len() as u64) as usize]) }
    }

    fn below(&self, bound: u64) -> u64 {
        (self.chance.unit() * bound as f64) as u64
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn first(seed: u64, quantity: usize) -> Vec<Change> {
        let mut shop = Shop::open(seed);
        (0..quantity).map(|_| shop.next_change()).collect()
    }

    #[test]
    fn what_happens_depends_on_the_seed_alone() {
        assert_eq!(first(7, 500), first(7, 500));
        assert_ne!(first(7, 500), first(8, 500));
    }

    #[test]
    fn every_document_counts_its_versions_and_none_comes_back() {
        let mut versions: HashMap<Thing, Option<u64>> = HashMap::new();
        for change in first(1, 20_000) {
            let known = versions.get(&change.thing).copied();
            match change.document {
                Some(document) => {
                    let version = document["version"].as_u64().unwrap();
                    let before = known.map_or(0, |version| version.expect("what is gone stays gone"));
                    assert_eq!(version, before + 1, "{}", change.thing);
                    versions.insert(change.thing, Some(version));
                }
                None => {
                    assert!(known.flatten().is_some(), "{} was there", change.thing);
                    versions.insert(change.thing, None);
                }
            }
        }
        let there =
            |kind| versions.iter().filter(|(thing, version)| thing.kind == kind && version.is_some()).count();
        assert_eq!(there(Kind::Product), PRODUCTS as usize);
        assert!((1..=MOST_ORDERS).contains(&there(Kind::Order)), "{}", there(Kind::Order));
        assert!((1..=MOST_CARTS).contains(&there(Kind::Cart)), "{}", there(Kind::Cart));
    }

    #[test]
    fn orders_reach_their_end_and_products_run_low_and_recover() {
        let changes = first(2, 5_000);
        let states = |state: &str| {
            changes
                .iter()
                .filter(|change| change.document.as_ref().is_some_and(|d| d["state"] == state))
                .count()
        };
        assert!(STATES.iter().all(|state| states(state) > 0));
        let stocks: Vec<u64> =
            changes.iter().filter_map(|change| change.document.as_ref()?["stock"].as_u64()).collect();
        assert!(stocks.iter().any(|stock| *stock < LOW) && stocks.iter().any(|stock| *stock >= LOW));
    }
}
