# frozen_string_literal: true

require "pando/events"
require "pando/events/catalogue"
require "pando/line_writer"

module Pando
  module Telemetry
    # Writes each event of this process as one line: text for a human, or JSON on request. A level limits which events
    # it writes. Each process that emits events has its own log. All of them write to the same stderr without mixing
    # their lines, and none waits for the reader.
    #
    #     Pando::Telemetry::Log.attach(format: :json)
    class Log
      # @return [Array<Symbol>]
      FORMATS = %i[text json].freeze
      # For each level of the log, the levels of the events that it shows. :notice shows NOTICES as well.
      LEVELS = { info: %i[info warn error], notice: %i[warn error], warn: %i[warn error], error: %i[error] }.freeze
      # The events of level :info that matter to a user who runs the server at a terminal.
      NOTICES = %w[server.ready setting.followed reload.started reload.finished refork.finished monitor.upgraded
                   monitor.stopping].freeze

      LOST = "lines.lost"
      private_constant :LOST

      # Subscribes a new log to the events.
      #
      # @param io [IO, #syswrite]
      # @param format [Symbol, String] one of {FORMATS}
      # @param level [Symbol] one of {LEVELS}
      # @return [Events::Subscription]
      # @raise [ArgumentError] for an unknown format
      def self.attach(io = $stderr, format: :text, level: :info)
        log = new(io, format: format, level: level)
        Events.subscribe(each_turn: log.method(:catch_up), &log)
      end

      # @param (see .attach)
      # @raise (see .attach)
      def initialize(io = $stderr, format: :text, level: :info)
        @shown = LEVELS.fetch(level)
        @notices = level == :notice ? NOTICES : []
        @writer = LineWriter.new(io, said: method(:tell)) { |lines| line(lost(lines)) }
        @formatter = formatter(format.to_sym)
      end

      # @param event [Event]
      # @return [nil]
      def call(event)
        @writer.write(line(event)) if show?(event) && !ours?(event)
      end

      # Writes lines that the reader did not take before.
      #
      # @param patience [Float] the most seconds that this may take
      # @return [nil]
      def catch_up(patience = 0.0) = @writer.flush(patience)

      # @return [Proc]
      def to_proc = method(:call).to_proc

      private

      def line(event) = @formatter.format(event, longest: @writer.longest_line)

      # This line is written at every log level, and before the event is emitted.
      def lost(lines) = Event.new(LOST, { count: lines, pid: Process.pid })

      def tell(lines) = Events.emit(LOST, count: lines, pid: Process.pid)

      # The writer has already written this process's own lines.lost.
      def ours?(event) = event.name == LOST && event[:pid] == Process.pid

      def show?(event) = @shown.include?(Events::Catalogue.level_of(event)) || @notices.include?(event.name)

      # Loads a format only when it is used: json is large, and the monitor should stay small.
      def formatter(name)
        case name
        when :text
          require "pando/telemetry/text_format"
          TextFormat.new
        when :json
          require "pando/telemetry/json_format"
          JSONFormat.new
        else raise ArgumentError, "unknown log format #{name.inspect}; use #{FORMATS.join(" or ")}"
        end
      end
    end
  end
end
