//! The rules of flash, each violated once.

use super::*;
use crate::flash::geometry::Shape;

fn at(nand: &Nand, page: u32) -> PageAddress {
    nand.geometry.address_of(Ppn(page))
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
fn any_order_allows_programs_anywhere() {
    let mut nand = ordered(PageOrder::Any);
    program(&mut nand, 3);
    nand.read(at(&nand, 3));
    program(&mut nand, 2);
    nand.erase(BlockIdx(1));
    program(&mut nand, 3);
}

#[test]
#[should_panic(expected = "on an unerased page")]
fn any_order_refuses_second_program() {
    let mut nand = ordered(PageOrder::Any);
    program(&mut nand, 1);
    program(&mut nand, 1);
}

#[test]
#[should_panic(expected = "read of an unwritten page")]
fn any_order_refuses_read_of_erased_page() {
    let mut nand = ordered(PageOrder::Any);
    program(&mut nand, 1);
    nand.read(at(&nand, 0));
}

#[test]
fn erased_block_is_programmable() {
    let mut nand = small();
    program(&mut nand, 0);
    program(&mut nand, 1);
    nand.read(at(&nand, 1));
    nand.erase(BlockIdx(0));
    program(&mut nand, 0);
    assert_eq!(nand.wear(), (0, 0.5, 1));
}

#[test]
fn programs_skip_retired_pages() {
    let mut nand = small();
    nand.retire_page(at(&nand, 0));
    program(&mut nand, 1);
    nand.read(at(&nand, 1));
    nand.erase(BlockIdx(0));
    program(&mut nand, 1);
}

#[test]
#[should_panic(expected = "use of a bad or retired page")]
fn program_of_retired_page_is_refused() {
    let mut nand = small();
    nand.retire_page(at(&nand, 0));
    program(&mut nand, 0);
}

#[test]
#[should_panic(expected = "program out of order")]
fn only_retired_pages_are_skipped() {
    let mut nand = small();
    nand.retire_page(at(&nand, 0));
    program(&mut nand, 3);
}

#[test]
#[should_panic(expected = "use of a bad or retired page")]
fn program_of_bad_block_is_refused() {
    let mut nand = small();
    nand.retire_block(BlockIdx(1));
    program(&mut nand, 0);
    program(&mut nand, 2);
}

#[test]
#[should_panic(expected = "use of a bad or retired page")]
fn read_of_bad_block_is_refused() {
    let mut nand = small();
    program(&mut nand, 0);
    nand.retire_block(BlockIdx(0));
    nand.read(at(&nand, 0));
}

#[test]
#[should_panic(expected = "erase of a bad or retired block")]
fn erase_of_bad_block_is_refused() {
    let mut nand = small();
    nand.retire_block(BlockIdx(0));
    nand.erase(BlockIdx(0));
}

#[test]
#[should_panic(expected = "program out of order or on an unerased page")]
fn second_program_is_refused() {
    let mut nand = small();
    program(&mut nand, 0);
    program(&mut nand, 0);
}

#[test]
#[should_panic(expected = "program out of order")]
fn program_out_of_order_is_refused() {
    program(&mut small(), 1);
}

#[test]
#[should_panic(expected = "read of an unwritten page")]
fn read_of_erased_page_is_refused() {
    let mut nand = small();
    program(&mut nand, 0);
    nand.read(at(&nand, 1));
}
