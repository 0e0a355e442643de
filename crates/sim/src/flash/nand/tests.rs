//! The rules of flash, each violated once.

use super::*;
use crate::flash::geometry::Shape;

fn at(nand: &Nand, page: u32) -> Place {
    nand.geometry.place_of(Ppn(page))
}

fn program(nand: &mut Nand, page: u32) {
    nand.program(at(nand, page));
}

fn small() -> Nand {
    ordered(PageOrder::Ascending)
}

fn ordered(order: PageOrder) -> Nand {
    let geometry = Geometry::from(Shape {
        channels: 1,
        planes: 1,
        blocks_per_plane: 2,
        pages_per_block: 2,
        metadata_pages: 0,
        page_bytes: 4096,
        logical_pages: 2,
    });
    Nand::new(geometry, order)
}

#[test]
fn pages_go_anywhere_where_the_order_is_free() {
    let mut nand = ordered(PageOrder::Any);
    program(&mut nand, 3);
    nand.read(at(&nand, 3));
    program(&mut nand, 2);
    nand.erase(BlockIdx(1));
    program(&mut nand, 3);
}

#[test]
#[should_panic(expected = "on an unerased page")]
fn but_only_once() {
    let mut nand = ordered(PageOrder::Any);
    program(&mut nand, 1);
    program(&mut nand, 1);
}

#[test]
#[should_panic(expected = "read of an unwritten page")]
fn and_only_what_was_programmed_is_read() {
    let mut nand = ordered(PageOrder::Any);
    program(&mut nand, 1);
    nand.read(at(&nand, 0));
}

#[test]
fn a_block_can_be_programmed_again_after_an_erase() {
    let mut nand = small();
    program(&mut nand, 0);
    program(&mut nand, 1);
    nand.read(at(&nand, 1));
    nand.erase(BlockIdx(0));
    program(&mut nand, 0);
    assert_eq!(nand.wear(), (0, 0.5, 1));
}

#[test]
fn retired_pages_are_left_out() {
    let mut nand = small();
    nand.retire_page(at(&nand, 0));
    program(&mut nand, 1);
    nand.read(at(&nand, 1));
    nand.erase(BlockIdx(0));
    program(&mut nand, 1);
}

#[test]
#[should_panic(expected = "use of a bad or retired page")]
fn a_retired_page_is_not_programmed() {
    let mut nand = small();
    nand.retire_page(at(&nand, 0));
    program(&mut nand, 0);
}

#[test]
#[should_panic(expected = "program out of order")]
fn only_retired_pages_are_left_out() {
    let mut nand = small();
    nand.retire_page(at(&nand, 0));
    program(&mut nand, 3);
}

#[test]
#[should_panic(expected = "use of a bad or retired page")]
fn a_bad_block_is_not_programmed() {
    let mut nand = small();
    nand.retire_block(BlockIdx(1));
    program(&mut nand, 0);
    program(&mut nand, 2);
}

#[test]
#[should_panic(expected = "use of a bad or retired page")]
fn a_bad_block_is_not_read() {
    let mut nand = small();
    program(&mut nand, 0);
    nand.retire_block(BlockIdx(0));
    nand.read(at(&nand, 0));
}

#[test]
#[should_panic(expected = "erase of a bad or retired block")]
fn a_bad_block_is_not_erased() {
    let mut nand = small();
    nand.retire_block(BlockIdx(0));
    nand.erase(BlockIdx(0));
}

#[test]
#[should_panic(expected = "program out of order or on an unerased page")]
fn a_page_is_not_programmed_twice() {
    let mut nand = small();
    program(&mut nand, 0);
    program(&mut nand, 0);
}

#[test]
#[should_panic(expected = "program out of order")]
fn pages_are_programmed_in_order() {
    program(&mut small(), 1);
}

#[test]
#[should_panic(expected = "read of an unwritten page")]
fn an_unwritten_page_is_not_read() {
    let mut nand = small();
    program(&mut nand, 0);
    nand.read(at(&nand, 1));
}
