# frozen_string_literal: true

require "pando/config/units"

module Pando
  class Config
    # Explains what to write instead of an unknown constant or method. A config file often expects Rails, but Pando
    # reads it before it loads the application.
    #
    # Used by RubyFile.
    #
    # @api private
    module UnknownName
      EARLY = "Pando reads this file before it loads the application"
      UNITS = (Units::SECONDS.keys + Units::BYTES.keys + [:percent]).map(&:name).freeze
      # Methods of ActiveSupport.
      TIMES = /\A(?:secs?|seconds?|mins?|minutes?|hours?|days?|weeks?)\z/
      CORE = %i[blank? present? presence in? try squish].freeze
      RAILS = "Write environment == \"production\" in place of Rails.env.production?, " \
              "and Dir.pwd in place of Rails.root"
      private_constant :EARLY, :UNITS, :TIMES, :CORE, :RAILS

      class << self
        # @param error [NameError] that a line of the file raised
        # @return [String, nil] nil: Ruby's own message is the best
        def explain(error)
          return constant(error) unless error.is_a?(NoMethodError)

          receiver = error.receiver
          return number(receiver, error.name) if receiver.is_a?(Numeric)
          return rails if receiver.is_a?(Module) && receiver.name == "Rails"

          "#{error.name} is a method of Rails, and #{EARLY}. Use plain Ruby" if CORE.include?(error.name)
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

          "#{number}.#{method} is unknown: #{EARLY}, without Rails. You can write #{own.join(", ")}"
        end
      end
    end
  end
end
