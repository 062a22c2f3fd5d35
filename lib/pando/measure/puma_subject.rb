# frozen_string_literal: true

require "pando/measure/subject"

module Pando
  module Measure
    # Puma of the application's bundle, with its config file, except for addresses and files. A plug-in that runs jobs
    # is left out. Without a config file Puma preloads the application and runs the given number of workers.
    #
    # @api private
    class PumaSubject < Subject
      GEM = "puma"
      # Config files that Puma evaluates before the user's file and after it.
      BEFORE = <<~RUBY
        def plugin(name) = name.to_s == "solid_queue" ? puts("pando measure: plugin :solid_queue is left out") : super
      RUBY
      AFTER = <<~RUBY
        %i[pidfile state control_url control_auth_token redirect_stdout redirect_stderr daemon]
          .each { |name| @options.delete(name) }
        @options[:binds] = []
      RUBY
      LEFT_OUT = /pando measure: (.*) is left out/
      private_constant :GEM, :BEFORE, :AFTER, :LEFT_OUT

      class << self
        # @return [String, nil] Puma's program, from the bundle if there is one; nil: Puma is not installed
        def program
          Gem.bin_path(GEM, GEM)
        rescue Gem::Exception, LoadError # the latter from Bundler
          nil
        end
      end

      def name = "Puma"

      # Puma prints the settings that are in effect, whatever the file says.
      def facts
        said = output
        { version: said[/Puma version: (\S+)/, 1] || Gem.loaded_specs[GEM]&.version&.to_s, config: user_file,
          workers: said[/Workers: (\d+)/, 1]&.to_i || @workers, threads: threads(said),
          preloaded: said.include?("Preloading application"), allocator: tree.allocator,
          left_out: said.scan(LEFT_OUT).flatten.uniq }
      end

      private

      # Workers that load the application themselves have their title before they have loaded it.
      def ready?
        return false unless super

        said = output
        said.include?("Preloading application") || said.scan(/Worker (\d+) .*booted/).uniq.size >= @workers
      end

      def worker = /\Apuma: cluster worker\b/

      def threads(said)
        %w[Min Max].map { |word| said[/#{word} threads: (\d+)/, 1]&.to_i }
      end

      # The file that Puma reads by default.
      def user_file
        ["config/puma/#{@config.environment}.rb", "config/puma.rb"]
          .find { |name| File.file?(File.join(@config.directory, name)) }
      end

      def command
        files = [write("before.rb", BEFORE), user_file, write("after.rb", AFTER)].compact
        [*ruby, PumaSubject.program, *files.flat_map { |file| ["-C", file] }, "-e", @config.environment,
         "-w", @workers.to_s, "-b", address, *("--preload" unless user_file), @config.rackup]
      end

      def address = "tcp://127.0.0.1:#{port}"
      def write(name, text) = path(name).tap { |file| File.write(file, text) }
      def environment = super.merge("WEB_CONCURRENCY" => @workers.to_s)
    end
  end
end
