# frozen_string_literal: true

require "pando/config/dsl"
require "pando/errors"

module Pando
  class Config
    # A config file, a program in Ruby. Any error in it becomes a ConfigError that begins with the file and line.
    #
    # @api private
    class RubyFile
      def initialize(path, recorder)
        @path = path
        @name = recorder.shorten(path)
        @scope = DSL.new(recorder).binding_of_file
      end

      # Runs the file. The caller has already changed to the directory.
      def run(values)
        source = read
        evaluate(source)
        look_for_assignments(source, values)
      end

      private

      # Like any Ruby source file it is UTF-8 unless it says otherwise. The locale does not matter.
      def read
        File.read(@path, encoding: Encoding::UTF_8)
      rescue SystemCallError => e
        raise ConfigError, "#{@name}: cannot be read: #{e.message}"
      end

      def evaluate(source)
        @scope.eval(source, @path, 1)
      rescue ConfigError
        raise
      rescue SyntaxError => e
        raise ConfigError, syntax_error(e)
      rescue NameError => e
        raise ConfigError, "#{where(e)}: #{explain(e) || "#{e.class}: #{e.message}"}"
      rescue ScriptError, StandardError, SystemStackError => e
        raise ConfigError, "#{where(e)}: #{e.class}: #{e.message}"
      end

      # Only for errors in the config file itself, not in files that it loads.
      def explain(error) = (UnknownName.explain(error) if error.backtrace_locations&.first&.path == @path)

      # Ruby's message begins with the file and line, unless the error is in a file that this one loads.
      def syntax_error(error)
        message = error.message.gsub(@path, @name)
        message.start_with?("#{@name}:") ? message : "#{where(error)}: #{error.class}: #{message}"
      end

      def where(error)
        line = error.backtrace_locations&.find { |location| location.path == @path }&.lineno
        [@name, line].compact.join(":")
      end

      # `workers = 4` is legal Ruby and sets nothing.
      def look_for_assignments(source, values)
        name = Settings.file_names.find { |known| @scope.local_variable_defined?(known) && !values.set_by_file?(known) }
        return unless name

        line = source.lines.index { |text| text.match?(/^\s*#{name}\s*[^=\s]?=/) }
        raise ConfigError, "#{[@name, line&.succ].compact.join(":")}: #{name} = ... only makes a local variable. " \
                           "Write #{name} without the equals sign."
      end
    end

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
