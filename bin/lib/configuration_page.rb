# frozen_string_literal: true

require "pando/config"
require "pando/hooks"

# Generates docs/configuration.md from the table of settings. After a change to the table, write the page anew:
#
#   ruby -Ilib bin/lib/configuration_page.rb
class ConfigurationPage
  PATH = File.expand_path("../../docs/configuration.md", __dir__)
  # What the page says of a setting beside its facts, with an example at the end, by the setting's name.
  NOTES = File.read(File.join(__dir__, "configuration_notes.md"), encoding: "UTF-8")
              .split(/^## /).drop(1).to_h { |section| section.split("\n\n", 2) }

  INTRODUCTION = <<~MARKDOWN
    # Configuration

    <!-- Generated from lib/pando/config/settings: edit the settings there, then generate this page again. -->

    You configure Pando in a Ruby file, by flags and by environment variables. Each setting has a default, so
    write only what should differ. The file is `config/pando.rb`, or the file that `-c FILE` names:

    ```ruby
    listen "0.0.0.0:8080"
    workers 4
    refork after: [500, 750, 1000]
    timeout 20, grace: 2

    after_worker_fork { |server, worker| Database.reconnect }
    on("worker.killed") { |event| warn event.payload }
    service(:mailer) { |service| Mailer.deliver until service.wait(1) }
    ```

    - `pando --check` tells you whether the settings are right.
    - `pando config` shows the effective settings and where each comes from.

    A flag beats the file, the file beats an environment variable, and the variable beats the default.

    If a setting is unknown or wrong, the server does not start. Pando names the file, the line and what you may
    have meant, and exits with status 2.

    Two processes read the file: the monitor, which never loads the application, and the mold, which loads it
    afterwards. So the file should do nothing but configure. Neither Rails nor anything else of the application is
    loaded at that time: write `workers 4 if environment == "production"` where you would ask `Rails.env`.

    ## Values

    - **Durations** are seconds; fractions are allowed. In the file you may also write `500.milliseconds`,
      `30.seconds`, `2.minutes` and `1.hours`; in flags, variables and strings `500ms`, `30s`, `2m` and `1h`.
    - **Sizes** are bytes. In the file you may also write `64.kb`, `1.5.mb` and `2.gb`; in flags, variables and
      strings `64KB`, `1.5MB` and `2GB`. A kilobyte is 1024 bytes.
    - **Off** is `false` in the file, and `off` in flags and variables.

    The units are methods of numbers in the config file only. The application does not see them.
  MARKDOWN

  # @return [String, nil] a line of a config file
  def self.example(setting) = NOTES[setting.name.name].to_s[/^```ruby\n(.*?)\n```/m, 1]

  # @return [String]
  def markdown
    [INTRODUCTION, *Pando::Config::Settings.groups.map { |title, settings| group(title, settings) }, blocks].join("\n")
  end

  private

  def group(title, settings)
    ["## #{title}\n", *settings.map { |setting| setting(setting) }].join("\n")
  end

  def setting(setting)
    ["### #{setting.title}\n", "#{setting.help}\n", facts(setting), notes(setting), options(setting)]
      .compact.join("\n")
  end

  def facts(setting)
    { "Value" => setting.type.expects, "Unit" => setting.unit, "Default" => default(setting),
      **situations(setting), "Flag" => flag(setting), variables(setting) => variable(setting) }
      .compact.map { |name, fact| "- #{name}: #{fact}" }.push("").join("\n")
  end

  def situations(setting)
    setting.defaults.to_h { |name, value| ["Default #{Pando::Config::Situation::NAMES.fetch(name)}", code(setting.write(value))] }
  end

  def variables(setting) = setting.env.size > 1 ? "Environment variables" : "Environment variable"
  def variable(setting) = setting.env.any? ? setting.env.map { |name| code(name) }.join(", ") : nil

  def default(setting)
    return if setting.default.nil? && setting.flag_only?

    written = setting.write(setting.default)
    written.empty? ? "none" : code(written)
  end

  def flag(setting)
    return code(setting.argument) && "#{code(setting.argument)}, an argument without a flag" if setting.positional?

    code([setting.flags.join("`, `"), setting.argument].join(" ")) if setting.flags.any?
  end

  def notes(setting)
    only = "You can set it only on the command line.\n" if setting.flag_only?
    notes = NOTES[setting.name.name]
    [notes && "#{notes.rstrip}\n", only].compact.join("\n") if notes || only
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
    hooks = Pando::Hooks::NAMES.map { |name| "`#{name}`" }.each_slice(4).map { |names| names.join(", ") }.join(",\n")
    <<~MARKDOWN
      ## Hooks, events and services

      A hook is a block that Pando runs at a certain moment in the life of the server. Hooks of the same name run in
      the order of the file. [Hooks](hooks.md) explains when and in which process each one runs:
      #{hooks}.

      `on("worker.ready") { |event| }` subscribes to an event, in each process that emits it. `on(:worker_ready)`
      means the same. [Events](events.md) lists the names.

      `service(:name) { |service| }` declares a process of your own that runs the block. Pando forks it from the
      mold. It can report killed workers, and send metrics to other systems: see [services](services.md).

      ## Pools and job nodes

      `pool :reports, paths: ["/reports"], workers: 2, timeout: 300` gives some paths workers of their own, with settings
      of their own: see [pools](pools.md). `node :sidekiq, count: 4` runs background jobs: see [job nodes](swarm.md).
    MARKDOWN
  end

  def code(text)
    text && "`#{text}`"
  end
end

File.write(ConfigurationPage::PATH, ConfigurationPage.new.markdown) if $PROGRAM_NAME == __FILE__
