# frozen_string_literal: true

require "pando/events"
require "pando/events/catalogue"
require "pando/telemetry/line_writer"

module Pando
  module Telemetry
    # Writes every event of this process as one line: text for a human, or JSON
    # on request. Subscribed in each process that emits events; all of them write
    # to the same stderr, and a line is never mixed with another one's.
    #
    #     Pando::Telemetry::Log.attach(format: :json)
    class Log
      # @return [Array<Symbol>]
      FORMATS = %i[text json].freeze

      # Subscribes a new log to all events.
      #
      # @param io [IO, #syswrite]
      # @param format [Symbol, String] one of {FORMATS}
      # @return [Events::Subscription]
      # @raise [ArgumentError] for another format
      def self.attach(io = $stderr, format: :text)
        Events.subscribe(&new(io, format: format))
      end

      # @param (see .attach)
      # @raise (see .attach)
      def initialize(io = $stderr, format: :text)
        @writer = LineWriter.new(io)
        @formatter = formatter(format.to_sym)
      end

      # @param event [Event]
      # @return [nil]
      def call(event)
        @writer.write(@formatter.format(event))
      end

      # @return [Proc]
      def to_proc
        method(:call).to_proc
      end

      private

      # Each is loaded on demand: the monitor stays small, and json is not small.
      def formatter(name)
        case name
        when :text
          require "pando/telemetry/text_format"
          TextFormat.new
        when :json
          require "pando/telemetry/json_format"
          JSONFormat.new
        else raise ArgumentError, "unknown log format #{name.inspect}; there are #{FORMATS.join(" and ")}"
        end
      end
    end
  end
end
