# frozen_string_literal: true

require "pando/events"
require "pando/events/catalogue"
require "pando/line_writer"

module Pando
  module Telemetry
    # Writes every event of this process, or those from a level upwards, as one line: text for a human, or JSON on
    # request. Subscribed in each process that emits events; all of them write
    # to the same stderr, a line is never mixed with another one's, and nobody waits for whoever reads it.
    #
    #     Pando::Telemetry::Log.attach(format: :json)
    class Log
      # @return [Array<Symbol>]
      FORMATS = %i[text json].freeze
      # What each level shows: the events of these levels in the catalogue, and NOTICES with :notice.
      LEVELS = { info: %i[info warn error], notice: %i[warn error], warn: %i[warn error], error: %i[error] }.freeze
      # What somebody wants to read who has the server at a terminal, and no more.
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
      # @raise [ArgumentError] for another format
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

      # Writes what its reader did not take before.
      #
      # @param patience [Float] seconds that it may take
      # @return [nil]
      def catch_up(patience = 0.0) = @writer.flush(patience)

      # @return [Proc]
      def to_proc
        method(:call).to_proc
      end

      private

      def line(event) = @formatter.format(event, longest: @writer.longest_line)

      # Its line is written whatever the level is, and before the event is told.
      def lost(lines) = Event.new(LOST, { count: lines, pid: Process.pid })

      def tell(lines) = Events.emit(LOST, count: lines, pid: Process.pid)

      # The writer has said so itself.
      def ours?(event) = event.name == LOST && event[:pid] == Process.pid

      def show?(event) = @shown.include?(Events::Catalogue.level_of(event)) || @notices.include?(event.name)

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
