# frozen_string_literal: true

require_relative "../bench_helper"
require "tmpdir"
require_relative "../../../../bench/apps/rails/generator"
require_relative "../../../../bench/apps/rails/jobs"
require_relative "../../../../bench/apps/rails/traffic"

# What the generator writes is Ruby, large enough, and what the traffic asks for.
class LabRailsAppTest < Minitest::Test
  MODELS = Bench::RailsApp::Blueprint.all
  SOME = %w[account review webhook].freeze # the first model, one in the middle, the last one

  def test_the_app_is_of_realistic_size_and_its_ruby_is_without_mistakes
    Dir.mktmpdir do |folder|
      Bench::RailsApp::Generator.new(folder).write

      assert_operator Dir[File.join(folder, "app/models/*.rb")].size, :>, 40
      files(folder).each { |path| assert RubyVM::InstructionSequence.compile_file(path), path }
      assert_empty Dir[File.join(folder, "**/*{NAME,PLURAL,.tt}*")]
    end
  end

  def test_the_traffic_asks_for_more_than_200_routes_of_every_model
    targets = Bench::RailsApp::Traffic.targets

    assert_operator targets.uniq.size, :>, 200
    MODELS.each { |model| assert_includes targets, ["GET", "/api/#{model.plural}/%d"] }
  end

  def test_each_kind_of_job_is_there_for_each_model
    Dir.mktmpdir do |folder|
      Bench::RailsApp::Generator.new(folder).write
      files = Dir[File.join(folder, "app/jobs/*_job.rb")].map { |path| File.basename(path, ".rb") }
      written = files.map { |name| name.split("_").map(&:capitalize).join }

      assert_equal [*Bench::RailsApp::Jobs.classes, "ApplicationJob"].sort, written.sort
    end
  end

  def test_each_model_but_the_first_belongs_to_one_before_it_and_is_known_to_it
    MODELS.drop(1).each do |model|
      refute_empty model.parents
      model.parents.each { |parent| assert_includes parent.children, model }
    end
  end

  private

  def files(folder)
    shared = Dir[File.join(folder, "{config,db,app/helpers,app/models/concerns}/**/*.rb")]
    shared + SOME.flat_map { |name| Dir[File.join(folder, "app/**/#{name}{,s,_*,s_*}.rb")] }
  end
end
