# frozen_string_literal: true

require "date"
require "json"
require "time"
require "pando/cli/admin_client"
require "pando/cli/command"
require "pando/cli/past"

module Pando
  module CLI
    # `pando history [POOL]`: the last 24 hours as the admin process remembers them: memory, requests and latency over
    # time, what memory has grown by and where, and what each refork and reload has changed.
    class History < Command
      SINCE = Switch.new(name: :since, flags: %w[--since], argument: "TIME",
                         help: "With `history`: begin at 14:00, at \"2031-05-04 14:00\", or 2h or 30m ago. [1h]").freeze
      CLOCK = /\A(\d{1,2}:\d\d(?::\d\d)?)\z/
      DATE = /\A(\d{4}-\d\d-\d\d)(?:[ T](\d{1,2}:\d\d(?::\d\d)?))?\z/
      AGO = /\A(\d{1,5})([smhd])\z/
      SECONDS = { "s" => 1, "m" => 60, "h" => 3600, "d" => 86_400 }.freeze

      OTHER_VERSION = "the server's history is that of another version of Pando: use its own `pando history`"

      def self.switches = [TEXT_OR_JSON, SINCE]

      private

      def config = @config ||= config_of_server

      def perform
        since = since(Time.now)
        past = Past.new(facts, since.to_i, pool)
        return show(JSON.pretty_generate(past.to_h, ascii_only: true)) if chosen_format == "json"

        past.empty? ? report_failure(Past::NONE) : show(past.text)
      rescue AdminClient::Failed => e
        report_failure(e.message)
      end

      def facts
        facts = AdminClient.new(config, terminal.env).read("/history.json")
        known = Past::KEYS.all? { |key| facts.is_a?(Hash) && facts[key].is_a?(Array) }
        known ? facts : raise(AdminClient::Failed, OTHER_VERSION)
      end

      def show(text)
        terminal.out.puts text
        CLI::OK
      end

      def most_words = 2

      def pool
        raise UsageError, "unexpected argument #{flags.words[1].inspect}. See pando --help." if flags.words[1]

        flags.words.first
      end

      # @return [Time] a time of the day that is still to come was yesterday's
      def since(now)
        text = flags[:since] || "1h"
        time = moment(text, now) or
          raise UsageError, "--since: must be a time such as 14:00 or \"2031-05-04 14:00\", or how long ago, such as " \
                            "30m, 2h or 1d, but is #{text.inspect}."
        raise UsageError, "--since: #{text} is in the future." if time > now

        time
      end

      def moment(text, now)
        case text
        when AGO then now - (Regexp.last_match(1).to_i * SECONDS.fetch(Regexp.last_match(2)))
        when CLOCK then [now.to_date, now.to_date - 1].map { |date| on(date, text) }.find { |time| time <= now }
        when DATE then on(Date.strptime(Regexp.last_match(1), "%Y-%m-%d"), Regexp.last_match(2) || "0:00")
        else Time.iso8601(text) # as in the log
        end
      rescue ArgumentError
        nil
      end

      def on(date, clock)
        hour, minute, second = clock.split(":").map(&:to_i)
        raise ArgumentError, clock if hour > 23

        Time.new(date.year, date.month, date.day, hour, minute, second || 0)
      end
    end
  end
end
