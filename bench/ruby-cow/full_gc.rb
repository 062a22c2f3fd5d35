# frozen_string_literal: true

# A full GC in a child in which nothing has changed. Marking rewrites the metadata of each compiled method (YJIT), and
# the mark bits of each heap page.
require_relative "cow"

METHODS = 10_000
SOURCE = (0...METHODS).map do |number|
  "def method#{number}(one, two) = one > two ? [one, two.to_s].size + #{number} : (two.nil? ? one : two + #{number})"
end
Work = Class.new { class_eval(SOURCE.join("\n")) }
work = Work.new
CALLS = (0...METHODS).map { |number| :"method#{number}" }
# One after the other: who is called seldom is never compiled.
CALLS.each { |name| 40.times { |turn| work.public_send(name, turn % 3, 1) } }
OBJECTS = Array.new(200_000) { |number| "object #{number}" }
puts "# #{RubyVM::YJIT.runtime_stats[:compiled_iseq_count]} methods compiled" if Cow.yjit?

Cow.settle
Cow.child("nothing") { nil }
Cow.child("a minor GC") { GC.start(full_mark: false) }
Cow.child("a full GC") { GC.start }
Cow.child("three full GCs") { 3.times { GC.start } }
