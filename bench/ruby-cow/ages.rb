# frozen_string_literal: true

# Objects that are young when the parent forks grow old in each child for itself. Where their age is in the objects'
# own flags (before Ruby 3.3) each step writes to them; where it is in a table of the heap page, to the table.
require_relative "cow"

GC.start
young = Array.new(300_000, &:to_s)
$stdout.flush
Cow.child("one minor GC, objects young at the fork") { GC.start(full_mark: false) }
Cow.child("four minor GCs") { 4.times { GC.start(full_mark: false) } }
Cow.settle
Cow.child("four minor GCs, all old at the fork") { 4.times { GC.start(full_mark: false) } }
young.clear
