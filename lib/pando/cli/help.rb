# frozen_string_literal: true

require "pando/cli/command"

module Pando
  module CLI
    # `pando help`, generated from the table of settings and the commands' switches.
    class Help
      WIDTH = 100
      COLUMN = 32

      def initialize(_arguments, terminal)
        @out = terminal.out
      end

      def call
        @out.puts "Usage: pando [COMMAND] [RACKUP] [FLAGS]", "", "Commands:", commands,
                  "", "Flags:", flags, "", "Environment variables:", variables, "",
                  "A flag beats the config file, the file beats an environment variable, the variable beats",
                  "the default. docs/configuration.md explains every setting of the config file."
        CLI::OK
      end

      private

      def commands = COMMANDS.map { |name, known| row(name, known.help) }

      def flags
        settings = Config::Settings.all.select(&:argument)
        positional, flagged = settings.partition(&:positional?)
        [*positional.map { |setting| row(setting.argument, help(setting)) },
         *flagged.map { |setting| row(usage(setting), help(setting)) },
         *switches.map { |switch| row(usage(switch), switch.help) }]
      end

      def switches
        commands = COMMANDS.each_value.map(&:load).select { |command| command.respond_to?(:switches) }
        [*commands.flat_map(&:switches).uniq, Command::VERSION, Command::HELP]
      end

      def usage(taker)
        short = taker.flags.first.start_with?("--") ? "    " : ""
        [short + taker.flags.join(", "), taker.argument].compact.join(" ")
      end

      def variables
        Config::Settings.all.flat_map { |setting| setting.env.map { |name| row(name, "Sets #{setting.title}.") } }
      end

      def help(setting)
        return setting.help if setting.flag_only?

        "#{setting.help} [#{setting.write(setting.default).delete_prefix(":").delete('"')}]"
      end

      # Two columns; wraps the second one.
      def row(left, right)
        first, *rest = right.scan(/\S.{0,#{WIDTH - COLUMN - 1}}(?=\s|\z)/)
        wide = left.size > COLUMN - 4
        start = wide ? ["  #{left}", indent(first)] : [format("  %-#{COLUMN - 2}s", left) + first]
        start + rest.map { |line| indent(line) }
      end

      def indent(line) = (" " * COLUMN) + line
    end
  end
end
