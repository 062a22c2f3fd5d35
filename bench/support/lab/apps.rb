# frozen_string_literal: true

require "support/bundle"

module Bench
  module Lab
    # The apps that are served. Each has a file in apps/, which adds it by name. An app has these methods:
    #
    #   bundle               its gems and those of the servers that run it, installed (Bundle)
    #   prepare(bundle)      called once, before any server is started
    #   environment(folder)  for the server; folder is the run's own, with its database
    #   traffic(seed)        the requests (Traffic)
    module Apps
      # An app could not be installed or filled; the message says why.
      class Failed < StandardError; end

      FOLDER = File.expand_path("../../apps", __dir__)
      GEMFILE = File.expand_path("../../gems/lab/Gemfile", __dir__)

      @makers = {}

      # @param name [String] for the command line
      # @yieldparam options [Hash] methods: number of the constant-caches app; redmine: path of a checkout
      # @yieldreturn [Object] the app
      def self.add(name, &maker)
        @makers[name] = maker
      end

      # @return [Array<String>]
      def self.names = @makers.keys

      # @param name [String] one of {names}
      def self.build(name, **options) = @makers.fetch(name).call(options)

      # @return [Bundle] for apps without a Gemfile of their own
      def self.bundle = @bundle ||= Bundle.new("lab", GEMFILE).prepare

      # @return [String] the folder for data that an app makes only once, in the user's cache folder
      def self.cache = Cache.path("lab")

      # Runs the block in a folder of the cache, in one process at a time.
      def self.locked(folder, &) = Cache.locked(File.join(folder, "lock"), &)
    end
  end
end

Dir[File.join(__dir__, "apps/*.rb")].each { |path| require path }
