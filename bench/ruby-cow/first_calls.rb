# frozen_string_literal: true

# What runs for the first time in the child fills its caches there: inline caches of calls and constants, and the call
# caches of the class.
require_relative "cow"

METHODS = 10_000
NAMES = (0...METHODS).map { |number| "A#{number}" }
Work = Class.new do
  NAMES.each_with_index { |name, number| const_set(name, number) }
  class_eval(NAMES.map { |name| "def get_#{name.downcase} = #{name}" }.join("\n"))
  class_eval(NAMES.map { |name| "def call_#{name.downcase} = get_#{name.downcase}" }.join("\n"))
end
work = Work.new
CALLS = NAMES.map { |name| :"call_#{name.downcase}" }

Cow.settle
Cow.child("#{METHODS} methods called for the first time") { CALLS.each { |name| work.public_send(name) } }
3.times { CALLS.each { |name| work.public_send(name) } }
Cow.settle
Cow.child("... after the parent has called them") { CALLS.each { |name| work.public_send(name) } }
3.times { CALLS.each { |name| work.public_send(name) } }
3.times { GC.start(full_mark: false) }
Cow.child("... and no full GC since") { CALLS.each { |name| work.public_send(name) } }
Cow.child("... after a constant of their name was set elsewhere") do
  elsewhere = Module.new
  NAMES.each { |name| elsewhere.const_set(name, 1) }
  CALLS.each { |name| work.public_send(name) }
end
