# frozen_string_literal: true

require "pando/cluster/control/line"
require "pando/config"

module Pando
  class Server
    # A configuration as lines of text, for a process that must not run its file: each setting as a flag
    # would give it, and the names of services.
    #
    # @api private
    class Transcript
      # The blocks that the monitor runs itself.
      HOOKS_OF_MONITOR = %i[after_monitor_ready after_worker_exit after_worker_hard_timeout].freeze
      LONGEST = Cluster::Control::Line::VALUE_LIMIT

      # @param config [Config]
      # @return [Array<String>] nothing in them but what Config.replay wants
      def self.of(config) = new(config).lines

      def initialize(config)
        @config = config
      end

      def lines
        settings = @config.in_file.flat_map { |name, entries| entries.map { |entry| set(Config::Settings[name], entry) } }
        settings + services + nodes + blocks_of_monitor
      end

      private

      def set(setting, entry)
        text = setting.type.text(entry.value)
        return whole("#{setting.title} is long") if text.bytesize > LONGEST

        line("set", name: setting.name, source: entry.source, value: text, **options(setting, entry.value))
      end

      def options(setting, value)
        return {} unless setting.options.any? && value.respond_to?(:options)

        value.options.to_h { |name, option| [:"option_#{name}", setting.options.fetch(name).type.text(option)] }
      end

      def services
        @config.blocks.select { |block| block.kind == :service }
               .map { |block| line("service", name: block.name, source: block.source) }
      end

      def nodes = @config.node_lines.map { |node| line("node", **node.to_h) }

      def blocks_of_monitor
        block = @config.blocks.find { |one| one.kind == :event || HOOKS_OF_MONITOR.include?(one.name) }
        block ? [whole("#{block.source}: #{block.title} runs in the monitor")] : []
      end

      # It takes the file itself.
      def whole(reason) = line("whole", reason: reason)

      def line(word, **pairs) = Cluster::Control::Line.encode(word, pairs)
    end
  end
end
