# frozen_string_literal: true

require "digest"
require "fileutils"
require "support/lab/traffic"
require_relative "../../../apps/rails/generator"
require_relative "../../../apps/rails/traffic"

module Bench
  module Lab
    module Apps
      # The generated Rails app. Its code and its database are made once per version of the generator and kept in the
      # user's cache folder. Each run has a copy of the database.
      class Rails
        DATABASE = "production.sqlite3"

        def bundle = Apps.bundle

        def environment(folder)
          FileUtils.cp(File.join(data, DATABASE), folder)
          surroundings(folder).merge("LAB_APP" => File.join(code, "config.ru"))
        end

        def traffic(seed)
          Traffic.new(RailsApp::Traffic.targets, writes: RailsApp::Traffic.writes, share: RailsApp::Traffic::WRITES,
                                                 seed: seed)
        end

        def prepare(bundle)
          Apps.locked(home) { generate(bundle) unless File.exist?(File.join(data, DATABASE)) }
        end

        private

        def home = @home ||= File.join(Apps.cache, digest)
        def code = File.join(home, "app")
        def data = File.join(home, "data")

        def digest
          Digest::SHA256.hexdigest(RailsApp::Generator.sources.map { |path| File.read(path) }.join("\0"))[0, 16]
        end

        def generate(bundle)
          FileUtils.rm_rf([code, "#{data}.new"])
          FileUtils.mkdir_p("#{data}.new")
          RailsApp::Generator.new(code).write
          fill(bundle)
          File.rename("#{data}.new", data)
        end

        def surroundings(folder) = { "LAB_FOLDER" => folder, "RAILS_ENV" => "production" }

        def fill(bundle)
          output = IO.popen([bundle.environment.merge(surroundings("#{data}.new")), Gem.ruby,
                             File.join(code, "db/prepare.rb")], err: %i[child out], &:read)
          raise Failed, "the Rails app's database: #{output}" unless Process.last_status.success?
        end
      end

      add("rails") { Rails.new }
    end
  end
end
