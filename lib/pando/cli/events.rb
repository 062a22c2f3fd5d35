# frozen_string_literal: true

require "pando/cli/control_command"
require "pando/events/catalogue"
require "pando/telemetry/json_format"
require "pando/telemetry/text_format"

module Pando
  module CLI
    # `pando events -f [NAME...]`: shows the monitor's events as they happen, as the log does, until it is interrupted
    # or the server has stopped. With names, only events whose name begins with one of them.
    class FollowEvents < ControlCommand
      FOLLOW = Switch.new(name: :follow, flags: %w[-f --follow],
                          help: "With `events`: show each event as it happens.").freeze
      NAMES = 16

      def self.switches = [TEXT_OR_JSON, FOLLOW]

      private

      def operands = ["NAME"] * NAMES

      def perform
        unless flags[:follow]
          raise UsageError,
                "pando events shows what happens from now on: pando events -f. The log has what has happened"
        end

        format = chosen_format == "json" ? Telemetry::JSONFormat.new : Telemetry::TextFormat.new
        ControlClient.new(path).ask!("events", { names: words.join(",") }) { |*record| show(*record, format) }
        CLI::OK
      end

      def show(word, pairs, format)
        case word
        when "following" then tell "pando: following the events of the server at #{path}"
        when "missed"
          tell "pando: #{pairs["count"]} events were left out, because the output was read too slowly"
        when "event"
          terminal.out.write(format.format(Cluster::Control::Line.event(pairs)))
          terminal.out.flush
        end
      end
    end
  end
end
