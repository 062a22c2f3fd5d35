# frozen_string_literal: true

require "fileutils"
require_relative "cache"

module Bench
  # The gems that one program needs, installed by Bundler into the user's cache folder. The Gemfile is copied there
  # first, because its lock file depends on the Ruby, and the checkout must not change. All bundles of a Ruby share one
  # folder of gems, and take a gem that is there already in whatever version: to compile takes most of the time.
  class Bundle
    class Failed < StandardError; end

    CHECKOUT = File.expand_path("../..", __dir__)
    INSTALL_WITHIN = 900 # seconds: some of the gems are compiled, one in Rust
    HOME = Cache.path("bundle", "#{RUBY_ENGINE}-#{RUBY_VERSION}")
    GEMS = File.join(HOME, "gems")
    # As Bundler names it.
    GEM_HOME = File.join(GEMS, RUBY_ENGINE, RbConfig::CONFIG["ruby_version"])
    # Options of `bundle install`. With --prefer-local, Bundler knows no other version of a gem than the one that is
    # there, so it may find no versions that fit together. Bundler 2.3, of Ruby 3.1, does not know the option.
    ATTEMPTS = (RUBY_VERSION >= "3.3" ? [%w[--prefer-local], []] : [[]]).freeze

    # Runs the block, which installs gems, in one process at a time: Bundler does not lock their folder.
    def self.locked(&) = Cache.locked(File.join(HOME, "lock"), &)

    # @param name [String] unique among the bundles of the benchmarks and tests
    # @param gemfile [String] path of the Gemfile
    # @param without [Array<String>] groups to leave out
    def initialize(name, gemfile, without: [])
      @gemfile = gemfile
      @without = without
      @folder = File.join(HOME, name)
    end

    # Installs missing gems. If several processes call it at once, the later ones wait, also those with another bundle.
    #
    # @return [self]
    # @raise [Failed] with Bundler's message
    def prepare
      Cache.locked(File.join(@folder, "lock")) do
        copy_gemfile
        bundler("check") || Bundle.locked { install }
      end
      self
    end

    # @return [Hash{String => String, nil}] the environment in which a Ruby finds these gems
    def environment
      clean_environment.merge(
        "BUNDLE_GEMFILE" => copy, "BUNDLE_PATH" => GEMS, "BUNDLE_FROZEN" => nil,
        "BUNDLE_WITHOUT" => @without.empty? ? nil : @without.join(":"),
        "PANDO_CHECKOUT" => CHECKOUT, "RUBYOPT" => "-rbundler/setup",
        "BOOTSNAP_CACHE_DIR" => File.join(@folder, "bootsnap") # for apps that use it
      )
    end

    # @return [String] path of an executable from one of the gems
    def executable(gem, name)
      script = "print Gem.bin_path(#{gem.dump}, #{name.dump})"
      path = IO.popen([environment, Gem.ruby, "-e", script], err: File::NULL, &:read)
      path.empty? ? raise(Failed, "#{gem} has no #{name}") : path
    end

    private

    def copy = File.join(@folder, "Gemfile")

    def copy_gemfile
      return if File.exist?(copy) && FileUtils.identical?(@gemfile, copy)

      FileUtils.rm_f("#{copy}.lock")
      FileUtils.cp(@gemfile, copy)
    end

    def install
      log = File.join(@folder, "install.log")
      warn "installing the gems of #{File.basename(@folder)} ..."
      return if ATTEMPTS.any? { |options| bundler("install", "--quiet", *options, out: log) }

      raise Failed, "bundle install in #{@folder} failed:\n#{File.read(log)}"
    end

    def bundler(*arguments, out: File::NULL)
      environment = self.environment.merge("RUBYOPT" => nil)
      system(environment, "timeout", INSTALL_WITHIN.to_s, Gem.ruby, Gem.bin_path("bundler", "bundle"), *arguments,
             chdir: @folder, in: File::NULL, out: out, err: %i[child out])
    end

    # Runs without the bundle of this program.
    def clean_environment
      ours = ENV.keys.grep(/\A(?:BUNDLE_|BUNDLER_|RUBYLIB\z|RUBYOPT\z)/)
      ours.to_h { |name| [name, nil] }
    end
  end
end
