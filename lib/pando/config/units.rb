# frozen_string_literal: true

module Pando
  class Config
    # Units for numbers in a config file: `512.mb`, `1.5.gb`,
    # `500.milliseconds`, `2.minutes`, `80.percent`. A kilobyte is 1024 bytes.
    #
    # A refinement that is active only in the config file: other code, such as
    # the application's, sees no new method on Integer.
    #
    # @api private
    module Units
      BYTES = { kb: 1024, mb: 1024**2, gb: 1024**3 }.freeze
      SECONDS = { milliseconds: 0.001, seconds: 1, minutes: 60, hours: 3600 }.freeze

      [Integer, Float].each do |number|
        refine(number) do
          BYTES.each { |name, factor| define_method(name) { (self * factor).round } }
          define_method(:percent) { "#{self}%" }
          SECONDS.each { |name, factor| define_method(name) { self * factor } }
        end
      end
    end
  end
end
