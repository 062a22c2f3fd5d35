# frozen_string_literal: true

require "json"
require "pando/events/catalogue"
require "pando/line_writer"
require "pando/telemetry/printable"

module Pando
  module Telemetry
    # Formats an event as a line of JSON, in ASCII: `time` (UTC), `event`, `level`, then the payload. Leaves out nil.
    # An error becomes an object with class, message, backtrace and cause.
    #
    #     {"time":"2031-05-04T12:03:22.123Z","event":"worker.ready","level":"info","slot":3}
    #
    # @api private
    class JSONFormat
      # Characters of a value and frames of a backtrace. The first pair whose line fits is used.
      LIMITS = [[1024, 100], [1024, 50], [1024, 25], [256, 10], [64, 0]].freeze
      MAX_DEPTH = 4
      MAX_ITEMS = 100
      RESERVED = %i[time event level].freeze
      private_constant :RESERVED

      # @param longest [Integer] the most bytes that the line may have
      # @return [String] with a newline at its end
      def format(event, longest: LineWriter::LONGEST)
        lines = LIMITS.lazy.map { |limits| encode(head(event).merge(payload(event, *limits))) }
        lines.find { |line| line.bytesize <= longest } || encode(head(event).merge("truncated" => true))
      end

      private

      # DEL is the only control character that JSON does not escape.
      def encode(object)
        "#{JSON.generate(object, ascii_only: true).gsub("\x7F", "\\u007f")}\n"
      end

      def head(event)
        { "time" => event.time.getutc.strftime("%Y-%m-%dT%H:%M:%S.%LZ"),
          "event" => Printable.utf8(event.name, 64),
          "level" => Events::Catalogue.level_of(event).to_s }
      end

      def payload(event, characters, frames)
        data = event.payload.reject { |key, value| value.nil? || RESERVED.include?(key) }
        shown = plain(data.except(:backtrace), characters, frames)
        data.key?(:backtrace) ? shown.merge("backtrace" => trace(data[:backtrace], frames)) : shown
      end

      def plain(value, characters, frames, depth = MAX_DEPTH)
        case value
        when Integer, true, false, nil then value
        when Float then value.finite? ? value.round(6) : value.to_s
        when Exception then error(value, characters, frames)
        when Array, Hash then collection(value, characters, frames, depth)
        else Printable.utf8(value.to_s, characters)
        end
      end

      def collection(value, characters, frames, depth)
        return "…" if depth.zero?

        items = value.first(MAX_ITEMS)
        return items.map { |item| plain(item, characters, frames, depth - 1) } if value.is_a?(Array)

        items.to_h { |key, item| [Printable.utf8(key.to_s, 64), plain(item, characters, frames, depth - 1)] }
      end

      def error(error, characters, frames)
        described = { "class" => error.class.to_s, "message" => Printable.utf8(error.message.to_s, characters),
                      "backtrace" => trace(error.backtrace, frames) }
        described["cause"] = error(error.cause, characters, frames / 5) if error.cause
        described
      end

      def trace(backtrace, frames)
        Printable.frames(backtrace).first(frames).map { |frame| Printable.utf8(frame.to_s, 200) }
      end
    end
  end
end
