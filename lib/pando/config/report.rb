# frozen_string_literal: true

require "pando/config"

module Pando
  class Config
    # A Config as `pando config` shows it: as JSON, or as a config file with the
    # same settings, in which a comment on each line names the source.
    #
    # @api private
    class Report
      # @param config [Config]
      def initialize(config)
        @config = config
      end

      # @return [String]
      def text
        [*header, *groups, *blocks].join("\n")
      end

      # @return [String]
      def json
        require "json"
        JSON.pretty_generate(directory: @config.directory, config_file: @config.config_file,
                             settings: shown(Settings.all).to_h { |setting| [setting.name, export(setting)] },
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
        rows.flat_map { |title, lines| ["", "# #{title}", *lines.map { |line| format("%-#{width}s  # %s", *line) }] }
      end

      def shown(settings)
        settings.reject(&:flag_only?)
      end

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

      def blocks
        return [] if @config.blocks.empty?

        ["", "# Hooks, services and events", *@config.blocks.map { |one| "# #{one.title} (#{one.source})" }]
      end

      def export(setting)
        { value: setting.export(@config.public_send(setting.name)), unit: setting.unit,
          source: @config.source(setting.name) }.compact
      end
    end
  end
end
