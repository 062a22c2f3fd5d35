# frozen_string_literal: true

# A child lets go of a few of what it has from its parent. Sweeping puts their slots onto a list that runs through the
# slots themselves, and free(3) writes into the chunk and its neighbours.
require_relative "cow"

kept = Array.new(200_000) { |number| "#{number} #{"x" * 770}" } # more bytes than fit into a slot: malloc has them

Cow.settle
Cow.child("1% of 200,000 strings let go of, and a GC") do
  kept.each_index { |index| kept[index] = nil if (index % 100).zero? }
  GC.start
end
Cow.child("... without the GC") { kept.each_index { |index| kept[index] = nil if (index % 100).zero? } }
Cow.child("a GC alone") { GC.start }
