# frozen_string_literal: true

require "pando/errors"
require "pando/config/dsl"
require "pando/config/recorder"
require "pando/config/unknown_name"

module Pando
  class Config
    # A config file, a program in Ruby. Any error in it becomes a ConfigError
    # that begins with the file and line.
    #
    # @api private
    class RubyFile
      # @param path [String] absolute
      # @param recorder [Recorder]
      def initialize(path, recorder)
        @path = path
        @name = recorder.shorten(path)
        @scope = DSL.new(recorder).binding_of_file
      end

      # Runs the file. The caller has already changed to the directory.
      #
      # @raise [ConfigError]
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
  end
end
