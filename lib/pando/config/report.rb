# frozen_string_literal: true

require "pando/config"

module Pando
  class Config
    # A Config as `pando config` shows it: as JSON, or as a config file with the
    # same settings, in which a comment on each line names the source.
    #
    # @api private
    class Report
      def initialize(config)
        @config = config
      end

      def text = [*header, *groups, *pools, *nodes, *blocks].join("\n")

      def json
        require "json"
        JSON.pretty_generate(directory: @config.directory, config_file: @config.config_file,
                             settings: shown(Settings.all).to_h { |setting| [setting.name, export(setting)] },
                             pools: @config.pools.zip(@config.pool_lines).map { |pool, line| export_pool(pool, line) },
                             nodes: @config.nodes.map { |kind| export_node(kind) },
                             blocks: @config.blocks.map { |one| one.to_h.slice(:kind, :name, :source) })
      end

      private

      # What a config file cannot set.
      def header
        ["# directory #{@config.directory} (#{@config.source(:directory)})",
         "# config file #{@config.config_file || "none"} (#{@config.source(:config_file)})"]
      end

      def groups
        rows = Settings.groups.transform_values { |settings| shown(settings).flat_map { |setting| rows(setting) } }
        width = rows.values.flatten(1).map { |written, _| written.size }.max
        rows.flat_map { |title, lines| section(title, lines.map { |line| format("%-#{width}s  # %s", *line) }) }
      end

      def shown(settings) = settings.reject(&:flag_only?)

      def rows(setting)
        @config.entries(setting.name).map do |entry|
          ["#{setting.title} #{setting.type.write(entry.value)}", "#{entry.source}#{meaning(setting, entry)}"]
        end
      end

      # What `auto` means on this machine.
      def meaning(setting, entry)
        resolved = @config.public_send(setting.name)
        " (#{resolved})" if entry.value == :auto && resolved != :auto
      end

      def section(title, lines) = lines.empty? ? [] : ["", "# #{title}", *lines]

      def pools
        section("Pools for some paths: what is missing is as above",
                @config.pool_lines.map { |line| "#{line}  # #{line.source}" })
      end

      # A file has more of them: what the runner takes, or the block that makes it.
      def nodes
        section("Job nodes", @config.nodes.map { |kind| "# node #{written(kind)} (#{kind.source})" })
      end

      def written(kind)
        said = node_values(kind).map { |key, (type, value)| "#{key}: #{value.nil? ? "nil" : type.write(value)}" }
        [kind.runner ? kind.runner.inspect : "of your own", *said].join(", ")
      end

      # @return [Hash{Symbol => Array(Type, Object)}] those that hold
      def node_values(kind)
        elsewhere = kind.options[:queue_file] ? NodeLine::IN_QUEUE_FILE : []
        NodeLine::KEYWORDS.except(:require, *elsewhere).to_h { |key, keyword| [key, [keyword.type, kind.public_send(key)]] }
      end

      def blocks
        section("Hooks, services and events", @config.blocks.map { |one| "# #{one.title} (#{one.source})" })
      end

      def export_pool(pool, line)
        settings = PoolLine::KEYWORDS.to_h do |key, name|
          setting = Settings[name]
          source = line.source if line.says?(key)
          source ||= key == :workers ? "default" : @config.source(setting.name)
          [key, { value: setting.export(pool.config.public_send(setting.name)), unit: setting.unit,
                  source: source }.compact]
        end
        { name: pool.name, paths: pool.paths, source: pool.source, settings: settings }
      end

      def export_node(kind)
        values = node_values(kind).transform_values { |type, value| value.nil? ? value : type.export(value) }
        { runner: kind.runner, **values, source: kind.source }
      end

      def export(setting)
        { value: setting.export(@config.public_send(setting.name)), unit: setting.unit,
          source: @config.source(setting.name) }.compact
      end
    end
  end
end
