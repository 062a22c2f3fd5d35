# frozen_string_literal: true

require "fileutils"
require "pando/cli/command"
require "pando/config/loader"

module Pando
  module CLI
    # `pando init [FILE]`: writes config/pando.rb, based on the config file of Puma, Pitchfork or Unicorn if there is
    # one. It runs neither that file nor the application.
    class Init < Command
      # Config files of other servers, in the order in which it looks for them.
      SOURCES = %w[config/puma.rb config/puma/production.rb config/pitchfork.rb config/unicorn.rb
                   config/unicorn/production.rb pitchfork.conf.rb unicorn.conf.rb puma.rb unicorn.rb].freeze
      FORCE = Switch.new(name: :replace, flags: %w[--force], argument: nil,
                         help: "With `init`: replace an existing config file.").freeze
      TO_STDOUT = Switch.new(name: :stdout, flags: %w[--stdout], argument: nil,
                             help: "With `init`: write to stdout instead of a file.").freeze

      def self.switches = [FORCE, TO_STDOUT]

      private

      def perform
        refuse_to_replace
        source = source_file
        text, report = source ? translated(source) : [starting_file, nil]
        return terminal.out.write(text) && CLI::OK if flags[:stdout]

        write(text)
        terminal.out.puts "wrote #{target_name}#{" from #{source}" if source}", *report, "next: #{check}"
        CLI::OK
      end

      def check = "#{"bundle exec " if terminal.env["BUNDLE_GEMFILE"]}pando --check"
      def root = @root ||= File.expand_path(flags.last(:directory)&.text || ".", directory)
      def target_name = flags.last(:config_file)&.text || Config::Loader::DEFAULT_FILE
      def target = File.expand_path(target_name, root)

      def refuse_to_replace
        return if flags[:stdout] || flags[:replace] || !File.exist?(target)

        raise UsageError, "#{target_name} already exists. pando init --force replaces it, --stdout shows what it " \
                          "would write"
      end

      def source_file
        named = flags.words.first or return SOURCES.find { |name| File.file?(File.join(root, name)) }
        return named if File.file?(File.expand_path(named, root))

        raise UsageError, "there is no file #{File.expand_path(named, root)}"
      end

      def translated(source)
        require "pando/compat/translator"
        path = File.expand_path(source, root)
        result = Compat::Translator.new(read(path), source, folder: folder(path)).call
        [result.text, report(result)]
      rescue Compat::Source::Unreadable => e
        raise ConfigError, "#{source} cannot be translated: #{e.message}. Is it Ruby? (ruby -c #{source})"
      end

      def read(path)
        text = File.read(path, encoding: Encoding::UTF_8)
        text.valid_encoding? ? text : raise(ConfigError, "#{path} is not written in UTF-8")
      rescue SystemCallError => e
        raise ConfigError, "#{path} cannot be read: #{e.message}"
      end

      # The folder of the source, relative to that of the result.
      def folder(path)
        require "pathname"
        Pathname.new(File.dirname(path)).relative_path_from(File.dirname(target)).to_s
      end

      def report(result)
        left = "; see the lines that begin with \"# pando:\"" if result.left_out.positive?
        ["lines kept: #{result.kept}, translated: #{result.translated}, left as comments: #{result.left_out}#{left}",
         *(jobs if result.jobs_left_out)]
      end

      def jobs
        ["jobs: plugin :solid_queue is in the lines left as comments. Write into #{target_name}, unless bin/jobs " \
         "runs them elsewhere:", "  #{Compat::SolidQueue::LINE}"]
      end

      def write(text)
        FileUtils.mkdir_p(File.dirname(target))
        File.write(target, text)
      rescue SystemCallError => e
        raise ConfigError, "#{target_name} cannot be written: #{e.message}"
      end

      def starting_file
        require "pando/compat/starting_file"
        Compat::StartingFile.text(root, terminal.env)
      end
    end
  end
end
