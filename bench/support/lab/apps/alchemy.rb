# frozen_string_literal: true

require "digest"
require "fileutils"
require "json"
require "support/lab/traffic"
require_relative "../../../apps/alchemy/traffic"

module Bench
  module Lab
    module Apps
      # A site of Alchemy CMS, a public Rails app: pages, back office and API. It has its own bundle. The database, the
      # files and the sessions are made once per version and kept in the user's cache folder. Each run has a copy of the
      # database.
      class Alchemy
        CODE = File.join(FOLDER, "alchemy")
        GEMFILE = File.expand_path("../../../gems/alchemy/Gemfile", __dir__)
        DATABASE = "production.sqlite3"
        SESSIONS = "sessions.json"
        VERSIONS = /^ {4}(?:rails|alchemy[-_]\w+) \(.*\)$/ # in the lock file

        # @param bundle [Bundle, nil] nil: that of bench/gems/alchemy
        def initialize(bundle = nil)
          @bundle = bundle
        end

        def bundle = @bundle ||= Bundle.new("alchemy", GEMFILE).prepare

        # @return [String] where the site's data are kept
        def home = @home ||= File.join(Apps.cache, "alchemy-#{digest}")

        # @return [Hash{String => String}] for the server
        def environment(folder)
          FileUtils.cp(File.join(data, DATABASE), folder)
          surroundings(folder, data).merge("LAB_APP" => File.join(CODE, "config.ru"))
        end

        # @param seed [Integer]
        def traffic(seed)
          mix = Bench::Alchemy::Traffic
          sessions = JSON.parse(File.read(File.join(data, SESSIONS)))
          Traffic.new(mix.targets(sessions), writes: mix.writes(sessions), share: mix::WRITES, seed: seed)
        end

        # Called once, before any server is started.
        def prepare(bundle)
          Apps.locked(home) { fill(bundle) unless File.exist?(File.join(data, DATABASE)) }
        end

        private

        def data = File.join(home, "data")

        def digest
          parts = sources.map { |path| File.read(path) } + File.read(lock).scan(VERSIONS)
          Digest::SHA256.hexdigest(parts.join("\0"))[0, 16]
        end

        # The inputs that determine the content of the database.
        def sources = Dir[File.join(CODE, "{config,db}/**/*.{rb,yml}")]
        def lock = "#{bundle.environment.fetch("BUNDLE_GEMFILE")}.lock"

        def surroundings(folder, data)
          { "LAB_FOLDER" => folder, "LAB_FILES" => data, "RAILS_ENV" => "production" }
        end

        def fill(bundle)
          warn "filling a site in #{home} ..."
          fresh = "#{data}.new"
          FileUtils.rm_rf(fresh)
          FileUtils.mkdir_p(fresh)
          output = IO.popen([bundle.environment.merge(surroundings(fresh, fresh)), Gem.ruby,
                             File.join(CODE, "db/prepare.rb")], err: %i[child out], &:read)
          raise Failed, "the site's database: #{output}" unless Process.last_status.success?

          File.rename(fresh, data)
        end
      end

      add("alchemy") { Alchemy.new }
    end
  end
end
