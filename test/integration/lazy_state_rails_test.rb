# frozen_string_literal: true

require "test_helper"
require "open3"
require "tmpdir"
require "pando/doctor/lazy_state"
require "support/app_files"
require_relative "../../bench/support/bundle"

# A Rails application that loads all its code at boot: what is left to its first request is little, and named.
class LazyStateRailsTest < Minitest::Test
  include Support::AppFiles

  APP = File.expand_path("../fixtures/apps/rails", __dir__)
  SCRIPT = <<~'RUBY'
    require "rack"
    require "rack/builder"
    require "stringio"
    require "pando/doctor/lazy_state"
    app = Array(Rack::Builder.parse_file("config.ru")).first
    result = Pando::Doctor::LazyState.examine do
      status, _, body = app.call({ "REQUEST_METHOD" => "GET", "PATH_INFO" => "/", "SCRIPT_NAME" => "",
                                   "QUERY_STRING" => "", "SERVER_NAME" => "localhost", "SERVER_PORT" => "80",
                                   "HTTP_HOST" => "localhost", "rack.url_scheme" => "http",
                                   "rack.input" => StringIO.new, "rack.errors" => $stderr })
      body.each { nil }
      body.close if body.respond_to?(:close)
      raise "status #{status}" unless status == 200
    end
    $stdout.write(result.to_json)
  RUBY

  def setup
    @folder = Dir.mktmpdir("pando-lazy")
  end

  def teardown = FileUtils.rm_rf(@folder)

  def test_what_an_eager_application_leaves_to_its_first_request
    result = run_ruby(SCRIPT, folder: APP)

    assert_empty(result.findings.reject { |one| one.severity == :note }.map(&:to_s))
    assert_operator result.findings.size, :<, 15, result.findings.join("\n")
    assert_empty(result.findings.select { |one| one.kind == :growth_per_request })
    template = result.findings.find { |one| one.kind == :lazy_code && one.subject.end_with?("index.html.erb") }
    assert_equal "#{APP}/app/views/notes/index.html.erb:1", template&.location
  end

  def test_what_zeitwerk_has_left_is_one_finding
    { "shop.rb" => "module Shop; end", "shop/base.rb" => "class Shop::Base; end",
      "shop/item.rb" => "class Shop::Item < Shop::Base; end" }.each { |name, text| write("app/#{name}", text) }
    result = run_ruby(<<~'RUBY')
      require "zeitwerk"
      loader = Zeitwerk::Loader.new
      loader.push_dir("#{Dir.pwd}/app")
      loader.setup
      require "pando/doctor/lazy_state"
      $stdout.write(Pando::Doctor::LazyState.observe { Shop::Item.new }.to_json)
    RUBY

    assert_equal [:lazy_constant], result.findings.map(&:kind), result.findings.join("\n")
    assert_equal [%w[Shop Shop::Item], 3], result.findings.first.details.values_at(:loaded, :files_count)
    assert_includes result.findings.first.advice, "eager_load"
  end

  private

  def run_ruby(script, folder: @folder)
    environment = Bench::Bundle.new("rails", File.join(APP, "Gemfile")).prepare.environment
    out, err, status = Support::Checkout.without_bundle do
      Open3.capture3(environment.merge("APP_DATABASE" => File.join(@folder, "notes.sqlite3"),
                                       "RAILS_ENV" => "production"),
                     "timeout", "120", RbConfig.ruby, "-W0", "-I", Support::Checkout.path("lib"), "-e", script,
                     chdir: folder)
    end
    assert_predicate status, :success?, err
    Pando::Doctor::LazyState::Result.parse(out[/^\{.*\z/m] || flunk(err))
  end
end
