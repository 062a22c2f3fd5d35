# frozen_string_literal: true

require "json"
require "pando/cli/admin_client"
require "pando/cli/command"
require "pando/cli/format"
require "pando/cli/past"

module Pando
  module CLI
    # `pando history`: the last 24 hours as the admin process remembers them: memory, requests and latency over time,
    # what memory has grown by and where, and what each refork and reload has changed.
    #
    # @api private
    class History < Command
      include Format

      SINCE = Switch.new(name: :since, flags: %w[--since], argument: "TIME",
                         help: "With `history`: begin at 14:00, at \"2031-05-04 14:00\", or 2h or 30m ago. [1h]").freeze
      CLOCK = /\A(?:(\d{4})-(\d\d)-(\d\d)[ T])?(\d{1,2}):(\d\d)(?::(\d\d))?\z/
      AGO = /\A(\d{1,5})(h|m)\z/
      SECONDS = { "h" => 3600, "m" => 60 }.freeze
      DAY = 86_400

      def self.switches = [Format::TEXT_OR_JSON, SINCE]

      private

      def perform
        since = since(Time.now)
        past = Past.new(AdminClient.new(config, terminal.env).read("/history.json"), since.to_i)
        terminal.out.puts(chosen_format == "json" ? JSON.pretty_generate(past.to_h) : past.text)
        CLI::OK
      rescue AdminClient::Failed => e
        terminal.err.puts "pando: #{e.message}"
        CLI::FAILED
      end

      # @return [Time] a time of the day that is still to come was yesterday's
      def since(now)
        text = flags[:since] || "1h"
        if (ago = AGO.match(text))
          return now - (ago[1].to_i * SECONDS.fetch(ago[2]))
        end

        date, clock = moment(text)
        time = Time.new(*(date || [now.year, now.month, now.day]), *clock)
        date || time <= now ? time : time - DAY
      rescue ArgumentError
        raise UsageError, "--since: must be a time such as 14:00 or \"2031-05-04 14:00\", or how long ago, such as " \
                          "2h or 30m, but is #{text.inspect}."
      end

      def moment(text)
        parts = CLOCK.match(text) or raise ArgumentError
        numbers = parts.captures.map { |part| part&.to_i }
        [(numbers.first(3) if parts[1]), numbers.last(3).compact]
      end
    end
  end
end
