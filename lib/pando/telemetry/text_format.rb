# frozen_string_literal: true

require "pando/events/catalogue"
require "pando/telemetry/printable"

module Pando
  module Telemetry
    # Formats an event as a line for a human:
    #
    #     2031-05-04T14:03:22.123+02:00 pando worker.ready slot=3 generation=2 pid=4711
    #
    # The time is local, as ISO 8601 with the offset from UTC. The backtrace of an error, or the one in the payload,
    # follows on indented lines, one frame each. Values that contain spaces are quoted. nil is left out.
    #
    # @api private
    class TextFormat
      # Characters shown of one value. The first limit whose line fits is used.
      LIMITS = [1024, 256, 64].freeze
      # The most bytes of a line. Linux writes up to PIPE_BUF (4096) bytes to a pipe atomically.
      MAX_LINE = 4095
      MAX_FRAMES = 100
      CAUSE_FRAMES = 20
      FRAME_LIMIT = 200
      TIME = "%Y-%m-%dT%H:%M:%S.%L%:z"
      MARKS = { warn: " WARN", error: " ERROR" }.freeze
      BARE = /\A[^\s"'=]+\z/
      private_constant :TIME, :MARKS, :BARE

      # @return [String] with a newline at its end
      def format(event, **)
        traces = event.payload.map { |key, value| trace(key, value) }
        "#{line(event)}\n#{traces.join}"
      end

      private

      def line(event)
        lines = LIMITS.lazy.map { |limit| [start(event), *pairs(event, limit)].join(" ") }
        lines.find { |line| line.bytesize < MAX_LINE } || "#{lines.first.byteslice(0, MAX_LINE - 8).scrub("")}…"
      end

      def start(event)
        mark = MARKS[Events::Catalogue.level_of(event)]
        "#{event.time.strftime(TIME)} pando#{mark} #{Printable.escape(event.name, 64)}"
      end

      def pairs(event, limit)
        shown = event.payload.compact.except(:backtrace)
        shown.map { |key, value| "#{Printable.escape(key, 64)}=#{show(value, limit)}" }
      end

      def show(value, limit)
        case value
        when Integer, true, false then value.to_s
        when Float then value.round(3).to_s
        when Exception then quote("#{value.class}: #{value.message}", limit)
        when Array then quote(value.map { |item| Printable.utf8(item.to_s, limit) }.join(","), limit)
        else quote(value, limit)
        end
      end

      def quote(value, limit)
        text = Printable.escape(value, limit)
        text.match?(BARE) ? text : "\"#{text.gsub('"', "\\\"")}\""
      end

      def trace(key, value)
        if value.is_a?(Exception) then frames(value.backtrace) + cause(value.cause)
        elsif key == :backtrace then frames(value)
        end
      end

      def frames(backtrace, indent: "    ", limit: MAX_FRAMES)
        list = Printable.frames(backtrace)
        text = list.first(limit).map { |frame| "#{indent}#{Printable.escape(frame, FRAME_LIMIT)}\n" }.join
        list.size > limit ? "#{text}#{indent}(#{list.size - limit} more)\n" : text
      end

      # Shows one level of causes: enough to see the error that a hook or a wrapper hid.
      def cause(error)
        return "" unless error

        summary = Printable.escape("#{error.class}: #{error.message}", LIMITS.first)
        "    caused by #{summary}\n#{frames(error.backtrace, indent: "      ", limit: CAUSE_FRAMES)}"
      end
    end
  end
end
