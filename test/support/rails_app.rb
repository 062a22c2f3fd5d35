# frozen_string_literal: true

require "digest"
require "fileutils"
require "open3"
require "securerandom"
require "tmpdir"
require "support/server_process"
require_relative "../../bench/support/bundle"

module Support
  # A fresh app from `rails new`, with one line of its Gemfile changed: `gem "pando"` in place of `gem "puma"`. The app
  # is generated once for each combination of Ruby, Rails and options, and kept with its gems in the user's cache
  # folder. Each test works on a copy.
  #
  #     app = RailsApp.create                                     # or RailsApp.create("--api")
  #     app.rails("generate", "scaffold", "Post", "title")
  #     server = app.serve(environment: "production", config: "workers 2")
  #     server.get("/up").status
  #     server.stop
  #     app.remove
  class RailsApp
    class Failed < StandardError; end

    # The newest Rails for this Ruby, among those that Pando is tested with.
    VERSION = RUBY_VERSION >= "3.2" ? "8.1" : "7.1"
    HOME = Bench::Cache.path("rails", "#{RUBY_ENGINE}-#{RUBY_VERSION}")
    GEMS = Bench::Bundle::GEM_HOME
    INSTALL_WITHIN = Bench::Bundle::INSTALL_WITHIN

    # @return [String] absolute path of the app
    attr_reader :folder

    class << self
      # @param options [Array<String>] for `rails new`: "--api"
      # @param version [String] of Rails: "8.1"
      # @return [RailsApp] a copy
      def create(*options, version: VERSION)
        new(Pristine.new(version, options))
      end

      # @return [Hash{String => String, nil}] the environment for a program of the app, without our own bundle
      def environment
        ours = ENV.keys.grep(/\A(?:BUNDLE_|BUNDLER_|RUBYLIB\z|RUBYOPT\z|(?:RAILS|RACK|APP)_ENV\z|GEM_)/)
        path = [RbConfig::CONFIG["bindir"], File.join(GEMS, "bin"), ENV.fetch("PATH", nil)].join(":")
        ours.to_h { |name| [name, nil] }.merge("GEM_HOME" => GEMS, "PATH" => path)
      end

      # Installs the gems of the app in this folder.
      #
      # @raise [Failed] with Bundler's message
      def install_gems(folder)
        Bench::Bundle.locked do
          attempts = Bench::Bundle::ATTEMPTS.dup
          begin
            run("bundle", "install", "--quiet", *attempts.shift, folder: folder, within: INSTALL_WITHIN)
          rescue Failed
            attempts.empty? ? raise : retry
          end
        end
      end

      # @return [String] what the command printed
      # @raise [Failed] it ended with a status other than 0
      def run(*command, folder:, env: {}, within: 120)
        output, status = Open3.capture2e(environment.merge(env), "timeout", within.to_s, *command,
                                         chdir: folder, stdin_data: "")
        status.success? ? output : raise(Failed, "#{command.join(" ")} in #{folder}: #{status}\n#{output}")
      end
    end

    # @param pristine [Pristine] what to copy
    def initialize(pristine)
      @pristine = pristine
      @prepared = []
      @folder = File.join(Dir.mktmpdir("pando-rails"), "shop")
      FileUtils.cp_r(pristine.prepare, @folder, preserve: true)
      @secret = SecureRandom.hex(64)
    end

    # @return [String] path of the written file
    def write(name, text)
      path = File.join(folder, name)
      FileUtils.mkdir_p(File.dirname(path))
      File.write(path, text)
      path
    end

    # @return [String]
    def read(name) = File.read(File.join(folder, name))

    # Adds gems to its Gemfile and installs them.
    #
    # @param lines [Array<String>] 'gem "redis"'
    def add_gems(*lines)
      write("Gemfile", [read("Gemfile"), *lines].join("\n"))
      begin
        bundle("install", "--local", "--quiet")
      rescue Failed
        RailsApp.install_gems(folder)
      end
    end

    # @return [String] what bin/rails printed
    def rails(*arguments, environment: "development", env: {})
      run(Gem.ruby, "bin/rails", *arguments, env: variables(environment).merge(env))
    end

    # Creates the databases of an environment and runs the migrations. As long as it has none, it gets a copy of what is
    # the same for all apps.
    def prepare_database(environment = "development")
      return rails("db:prepare", environment: environment) if Dir.exist?(File.join(folder, "db/migrate"))
      return if @prepared.include?(environment) # records may be in it

      @prepared << environment
      copy = @pristine.with_databases(environment)
      %w[db storage].each { |name| FileUtils.cp_r(File.join(copy, name), folder) }
    end

    # @return [String]
    def bundle(*arguments) = run("bundle", *arguments)

    # Starts the server in the app's folder. Writes `config` to config/pando.rb.
    #
    # @param environment [String] for RAILS_ENV, the only variable that says so
    # @param command [Array<String>] the program, such as %w[bin/rails server]; empty: Pando's executable
    # @param options [Hash] see ServerProcess.start
    # @return [ServerProcess]
    def serve(environment: "development", config: "", command: nil, arguments: [], env: {}, database: true, **options)
      prepare_database(environment) if database
      write("config/pando.rb", "log_format :json\nlog_level :info\n#{config}")
      ServerProcess.start(folder: folder, program: command && [Gem.ruby, *command], arguments: arguments,
                          env: variables(environment).merge(command ? {} : bundled, env), **options)
    end

    # @return [Hash{String => String}] for a program of the app that runs in this environment
    def variables(environment)
      RailsApp.environment.merge("RAILS_ENV" => environment, "SECRET_KEY_BASE" => @secret)
    end

    # @return [Hash{String => String}] variables that make Ruby use the app's bundle
    def bundled = { "BUNDLE_GEMFILE" => File.join(folder, "Gemfile"), "RUBYOPT" => "-rbundler/setup" }

    def run(*command, env: {}, within: 120) = RailsApp.run(*command, folder: folder, env: env, within: within)

    def remove = FileUtils.rm_rf(File.dirname(folder))

    # The original that the copies are made from.
    class Pristine
      SWAPPED = /^gem "puma".*$/
      # No server uses them, and they take long to install. Rails 7 does not know all of these options.
      UNUSED = %w[--skip-rubocop --skip-brakeman --skip-ci].freeze
      PREFER_LOCAL = File.expand_path("prefer_local.rb", __dir__)

      def initialize(version, options)
        @version = version
        @options = options
        # The versions of the gems stay until the cache is emptied; the Gemfile contains the path of the checkout.
        made_with = Digest::SHA256.hexdigest([Checkout::ROOT, GEMS, *UNUSED].join("\n"))[0, 8]
        @name = ["rails", version, *options, made_with].join("-").tr("/=", "__")
      end

      # @return [String] its folder
      def prepare
        once(@name) do |app, workshop|
          generate(app, workshop)
          swap(File.join(app, "Gemfile"))
          RailsApp.install_gems(app)
        end
      end

      # @return [String] the folder of a copy with the databases of this environment
      def with_databases(environment)
        once("#{@name}-#{environment}") do |app|
          FileUtils.cp_r(prepare, app, preserve: true)
          RailsApp.run(Gem.ruby, "bin/rails", "db:prepare", folder: app, env: {
                         "RAILS_ENV" => environment, "SECRET_KEY_BASE" => SecureRandom.hex(64)
                       })
        end
      end

      private

      # @yieldparam app [String] the folder to make
      # @yieldparam workshop [String] the one around it
      # @return [String] where it is from then on
      def once(name)
        path = File.join(HOME, name)
        Bench::Cache.locked("#{path}.lock") do
          make(path) { |*folders| yield(*folders) } unless File.directory?(path)
        end
        path
      end

      def make(path)
        workshop = Dir.mktmpdir("new", HOME)
        app = File.join(workshop, "shop")
        yield app, workshop
        File.rename(app, path)
      ensure
        FileUtils.rm_rf(workshop)
      end

      # As with `gem install rails && rails new`: the app must not depend on the generator's bundle.
      def generate(app, workshop)
        warn "making an app of Rails #{@version} ..."
        File.write(File.join(workshop, "Gemfile"), %(source "https://rubygems.org"\ngem "rails", "~> #{@version}.0"\n))
        RailsApp.install_gems(workshop)
        version = File.read(File.join(workshop, "Gemfile.lock"))[/^    rails \(([\d.]+)\)/, 1]
        script = %(gem "rails", "#{version}"; load Gem.bin_path("railties", "rails", "#{version}"))
        FileUtils.rm(Dir[File.join(workshop, "Gemfile*")])
        env = { "RUBYOPT" => ("-r#{PREFER_LOCAL}" if Bench::Bundle::ATTEMPTS.size > 1) }
        Bench::Bundle.locked do
          RailsApp.run(Gem.ruby, "-e", script, "new", app, "--skip-git", *(UNUSED if @version >= "8"), *@options,
                       folder: workshop, env: env, within: INSTALL_WITHIN)
        end
      end

      def swap(gemfile)
        text = File.read(gemfile)
        raise Failed, "the Gemfile of Rails #{@version} names no puma:\n#{text}" unless text.match?(SWAPPED)

        File.write(gemfile, text.sub(SWAPPED, %(gem "pando", path: #{Checkout::ROOT.dump})))
      end
    end
    private_constant :Pristine
  end
end
