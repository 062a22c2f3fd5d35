# frozen_string_literal: true

require "fileutils"
require "support/bundle"

module Bench
  module Lab
    # The apps: what serves, and what is asked of it. Each has a file in apps/, which adds it by name. An app answers
    #
    #   bundle               its gems and those of the servers it is run on, installed (Bundle)
    #   prepare(bundle)      once, before any server is started
    #   environment(folder)  for the server; folder is the run's own, where it has its database
    #   traffic(seed)        what is asked of it (Traffic)
    module Apps
      # An app that cannot be installed or filled, with the reason.
      class Failed < StandardError; end

      FOLDER = File.expand_path("../../apps", __dir__)
      GEMFILE = File.expand_path("../../gems/lab/Gemfile", __dir__)

      @makers = {}

      # @param name [String] what a command line calls it
      # @yieldparam options [Hash] methods: of the constant-caches app, redmine: path of a checkout
      # @yieldreturn [Object] the app
      def self.add(name, &maker)
        @makers[name] = maker
      end

      # @return [Array<String>]
      def self.names = @makers.keys

      # @param name [String] one of {names}
      def self.build(name, **options) = @makers.fetch(name).call(options)

      # @return [Bundle] of the apps that bring no Gemfile of their own
      def self.bundle = @bundle ||= Bundle.new("lab", GEMFILE).prepare

      # @return [String] where an app keeps what it has made once, in the user's cache folder
      def self.cache = File.join(ENV.fetch("XDG_CACHE_HOME") { File.join(Dir.home, ".cache") }, "pando", "lab")

      # Runs the block in a folder of the cache; of several programs at a time, the later ones wait.
      def self.locked(folder)
        FileUtils.mkdir_p(folder)
        File.open(File.join(folder, "lock"), File::CREAT | File::RDWR) do |lock|
          lock.flock(File::LOCK_EX)
          yield
        end
      end
    end
  end
end

Dir[File.join(__dir__, "apps/*.rb")].each { |path| require path }
