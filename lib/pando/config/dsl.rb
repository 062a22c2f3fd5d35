# frozen_string_literal: true

require "pando/config/recorder"

# `self` in a config file: a method for each setting and each hook, and `on`, `service`, `pool` and `node`. Each method
# passes its arguments and the line that called it on to the Recorder.
#
# Opened without its namespace around it, because Ruby looks up the file's constants from here: `Settings` in the file
# must not mean Pando's.
#
# @api private
class Pando::Config::DSL
  using Pando::Config::Units

  def initialize(recorder)
    @recorder = recorder
  end

  Pando::Config::Recorder::STATEMENTS.each do |kind, names|
    names.each do |name|
      define_method(name) do |*values, **options, &block|
        @recorder.record(kind, name, values, options, block, caller_locations(1, 1).first)
      end
    end
  end

  def inspect = "the config file"

  # A binding in which `self` is this object, Units are active and no local variable is defined. Methods that the file
  # defines belong to this object alone.
  def binding_of_file
    instance_eval { binding }
  end

  private

  def method_missing(name, *)
    @recorder.unknown(name, caller_locations(1, 1).first)
  end

  def respond_to_missing?(*) = false
end
