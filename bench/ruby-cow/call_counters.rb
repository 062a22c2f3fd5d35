# frozen_string_literal: true

# Methods that have been called in the parent, and are not compiled yet, are called in the child. Run it with --yjit and
# without: with a compiler each call counts in the method's own record, until there are enough.
require_relative "cow"

METHODS = 20_000
Work = Class.new { class_eval((0...METHODS).map { |number| "def method#{number} = nil" }.join("\n")) }
work = Work.new
CALLS = (0...METHODS).map { |number| :"method#{number}" }
CALL_ALL = eval("->(work) { #{CALLS.map { |name| "work.#{name}" }.join("; ")} }") # rubocop:disable Security/Eval, Style/EvalWithLocation
2.times { CALL_ALL.call(work) }

Cow.settle
Cow.child("#{METHODS} methods called once more") { CALL_ALL.call(work) }
Cow.child("... five times more") { 5.times { CALL_ALL.call(work) } }
