# frozen_string_literal: true

require "pando/config/suggestion"
require "pando/config/units"

module Pando
  class Config
    # What to write instead of a constant or a method that a config file does not find: the file is read before the
    # application is loaded, and so without Rails.
    #
    # Used by RubyFile.
    #
    # @api private
    module UnknownName
      EARLY = "this file is read before the application is loaded"
      UNITS = (Units::SECONDS.keys + Units::BYTES.keys + [:percent]).map(&:name).freeze
      # Of ActiveSupport.
      TIMES = /\A(?:secs?|seconds?|mins?|minutes?|hours?|days?|weeks?)\z/
      CORE = %i[blank? present? presence in? try squish].freeze
      RAILS = "Write environment == \"production\" in place of Rails.env.production?, " \
              "and Dir.pwd in place of Rails.root"
      private_constant :EARLY, :UNITS, :TIMES, :CORE, :RAILS

      class << self
        # @param error [NameError] that a line of the file raised
        # @return [String, nil] nil: Ruby's own words are the best
        def explain(error)
          return constant(error) unless error.is_a?(NoMethodError)

          receiver = error.receiver
          return number(receiver, error.name) if receiver.is_a?(Numeric)
          return rails if receiver.is_a?(Module) && receiver.name == "Rails"

          "#{error.name} is a method of Rails', and #{EARLY}. Write it in Ruby's own" if CORE.include?(error.name)
        rescue ArgumentError
          nil # the error was made without a receiver
        end

        private

        def constant(error)
          name = error.name.to_s
          return unless name.match?(/\A[A-Z]/)
          return rails if name == "Rails"

          "#{name} is not loaded: #{EARLY}. Require its file, ask ENV, or use it in a hook such as " \
            "after_worker_fork { |server, worker| ... }"
        end

        def rails = "Rails is not loaded: #{EARLY}. #{RAILS}"

        def number(number, method)
          return unless number.is_a?(Integer) || number.is_a?(Float)

          own = UNITS.map { |unit| "#{number}.#{unit}" }
          if method.match?(TIMES)
            return "#{number}.#{method} is unknown: #{EARLY}, without Rails. Write seconds as a number, or " \
                   "#{own.first(4).join(", ").sub(/, (?=[^,]*\z)/, " or ")}"
          end

          "#{number}.#{method} is unknown: #{EARLY}, without Rails. There are #{own.join(", ")}"
        end
      end
    end
  end
end
