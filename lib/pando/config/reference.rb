# frozen_string_literal: true

require "pando/config"
require "pando/hooks"

module Pando
  class Config
    # docs/configuration.md, made of the table of settings. After a change to
    # the table, write the page anew:
    #
    #   ruby -Ilib -rpando/config/reference -e Pando::Config::Reference.write
    #
    # @api private
    class Reference
      PATH = File.expand_path("../../../docs/configuration.md", __dir__)

      INTRODUCTION = <<~MARKDOWN
        # Configuration

        This page is made from the table of settings in `lib/pando/config/settings`; do not edit it by hand.

        Pando reads `config/pando.rb` if there is one, or the file that `-c FILE` names. The file is Ruby:

        ```ruby
        listen "0.0.0.0:8080"
        workers 4
        refork after: [500, 750, 1000]
        timeout 20, grace: 2

        after_worker_fork { |server, worker| Database.reconnect }
        on("worker.killed") { |event| warn event.payload }
        service(:mailer) { |service| Mailer.deliver until service.wait(1) }
        ```

        A flag beats the file, the file beats an environment variable, and the variable beats the default.
        `pando config` shows the settings that hold and where each came from; `pando --check` says whether all is
        right. A setting that is unknown or wrong stops the boot, with the file, the line and what was meant, and
        exit status 2.

        The file is read twice: by the monitor, which never loads the application, and by the mold, which loads it
        afterwards. It should therefore do nothing but configure. Neither Rails nor anything else of the application is
        there: write `workers 4 if environment == "production"` where you would ask `Rails.env`.

        ## Values

        - **Durations** are seconds, with fractions. In the file `500.milliseconds`, `30.seconds`, `2.minutes` and
          `1.hours` work too; flags and text take `500ms`, `30s`, `2m` and `1h`.
        - **Sizes** are bytes. In the file `64.kb`, `1.5.mb` and `2.gb` work too; text takes `64KB`, `1.5MB` and
          `2GB`. A kilobyte is 1024 bytes.
        - **Off** is `false` in the file and `off` on the command line.

        The units are methods of numbers in the config file only; the application does not see them.
      MARKDOWN

      # @return [void]
      def self.write(path = PATH)
        File.write(path, new.markdown)
      end

      # @return [String]
      def markdown
        [INTRODUCTION, *Settings.groups.map { |title, settings| group(title, settings) }, blocks].join("\n")
      end

      private

      def group(title, settings)
        ["## #{title}\n", *settings.map { |setting| setting(setting) }].join("\n")
      end

      def setting(setting)
        ["### #{setting.title}\n", "#{setting.help}\n", facts(setting), notes(setting),
         example(setting), options(setting)].compact.join("\n")
      end

      def facts(setting)
        { "Value" => setting.type.expects, "Unit" => setting.unit, "Default" => default(setting),
          **situations(setting), "Flag" => flag(setting), variables(setting) => variable(setting) }
          .compact.map { |name, fact| "- #{name}: #{fact}" }.push("").join("\n")
      end

      def situations(setting)
        setting.defaults.to_h { |name, value| ["Default #{Situation::NAMES.fetch(name)}", code(setting.write(value))] }
      end

      def variables(setting) = setting.env.size > 1 ? "Environment variables" : "Environment variable"
      def variable(setting) = setting.env.any? ? setting.env.map { |name| code(name) }.join(", ") : nil

      def default(setting)
        code(setting.write(setting.default)) unless setting.default.nil? && setting.flag_only?
      end

      def flag(setting)
        return code(setting.argument) && "#{code(setting.argument)}, an argument without a flag" if setting.positional?

        code([setting.flags.join("`, `"), setting.argument].join(" ")) if setting.flags.any?
      end

      def notes(setting)
        only = "It can only be set on the command line.\n" if setting.flag_only?
        [setting.notes && "#{setting.notes}\n", only].compact.join("\n") if setting.notes || only
      end

      def example(setting)
        "```ruby\n#{setting.example}\n```\n" if setting.example
      end

      def options(setting)
        return if setting.options.empty?

        rows = setting.options.values.map do |option|
          default = option.default.nil? ? "" : code(option.type.write(option.default))
          "| `#{option.name}:` | #{option.type.expects} | #{default} | #{option.help} |"
        end
        ["| option | value | default | |", "|---|---|---|---|", *rows, ""].join("\n")
      end

      def blocks
        hooks = Hooks::NAMES.map { |name| "`#{name}`" }.each_slice(4).map { |names| names.join(", ") }.join(",\n")
        <<~MARKDOWN
          ## Hooks, events and services

          A hook is a block that runs at a moment in the life of the server; several of one name run in the order of
          the file. [Hooks](hooks.md) tells when and in which process each runs:
          #{hooks}.

          `on("worker.ready") { |event| }` subscribes to an event, in each process that emits it; `on(:worker_ready)`
          means the same. The names are listed in [events](events.md).

          `service(:name) { |service| }` declares a process of its own, forked from the mold, that runs the block.
        MARKDOWN
      end

      def code(text)
        text && "`#{text}`"
      end
    end
  end
end
