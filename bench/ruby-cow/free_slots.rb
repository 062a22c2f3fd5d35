# frozen_string_literal: true

# A heap with holes, as an application leaves it after its boot. New objects fill the holes, so that a child that makes
# a few of them writes to pages all over the heap.
require_relative "cow"

kept = Array.new(600_000, &:to_s)
kept.each_index { |index| kept[index] = nil if (index % 20).zero? }
kept.compact!
few = -> { Array.new(20_000, &:to_s).size } # objects of 40 bytes: 0.8 MiB

Cow.settle
Cow.child("20,000 objects in a heap of which 5% are free") { few.call }
if Process.respond_to?(:warmup)
  Process.warmup
  Cow.child("... after Process.warmup") { few.call }
end
GC.compact if GC.respond_to?(:compact)
Cow.settle
Cow.child("... after GC.compact") { few.call }
