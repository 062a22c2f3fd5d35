# frozen_string_literal: true

module Pando
  module Events
    # One subscriber: the event that it wants and the block to call. Events holds it; `Events.subscribe` returns it to
    # users as a handle.
    #
    # A subscriber is foreign code inside the monitor's loop. If it raises, Pando reports that on stderr with the
    # block's line, but only once: a metrics client that is down would otherwise fill the disk.
    class Subscription
      # @api private
      # @param name [String, nil] nil for all events
      # @param block [Proc]
      # @param each_turn [#call, nil] see {Events.proceed}
      def initialize(name, block, each_turn = nil)
        @name = name
        @block = block
        @each_turn = each_turn
        @reported = false
      end

      # @api private
      # @param name [String]
      # @return [Boolean]
      def wants?(name)
        @name.nil? || @name == name
      end

      # @api private
      # @param patience [Float]
      # @return [nil]
      def proceed(patience)
        @each_turn&.call(patience)
        nil
      rescue StandardError, ScriptError, SystemStackError => error
        report("a turn", error)
      end

      # @api private
      # @param event [Event]
      # @return [nil]
      def deliver(event)
        @block.call(event)
        nil
      rescue StandardError, ScriptError, SystemStackError => error
        report(event.name, error)
      end

      private

      def report(occasion, error)
        return if @reported

        @reported = true
        require "pando/line_writer" # a command that only reads settings needs no C extension
        LineWriter.new($stderr).write("pando: the subscriber at #{location} failed on #{occasion}: " \
                                      "#{describe(error)} (told once)\n")
      end

      def location
        file, line = @block.source_location
        file ? "#{file}:#{line}" : "an unknown line"
      end

      def describe(error)
        "#{error.class}: #{error.message}".inspect[1..-2].slice(0, 500)
      end
    end
  end
end
