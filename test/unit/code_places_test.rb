# frozen_string_literal: true

require "test_helper"
require "pando/code_places"
require "tmpdir"

class CodePlacesTest < Minitest::Test
  Frame = Struct.new(:path, :lineno)

  def setup
    @root = File.realpath(Dir.mktmpdir("pando-places"))
    @places = Pando::CodePlaces.new(@root)
  end

  def teardown = FileUtils.rm_rf(@root)

  def test_the_files_of_its_folder_are_the_applications
    assert @places.own?("#{@root}/app/a.rb")
    refute @places.own?("#{@root}-other/a.rb")
    refute @places.own?("(eval)")
    refute @places.own?(nil)
  end

  def test_so_are_those_that_are_reached_through_a_link_to_it
    Dir.mktmpdir do |elsewhere|
      link = "#{File.realpath(elsewhere)}/current"
      File.symlink(@root, link)
      places = Pando::CodePlaces.new(link)

      [link, @root].each do |folder|
        assert places.own?("#{folder}/app/a.rb"), folder
        refute places.own?("#{folder}/vendor/bundle/ruby/3.3.0/gems/rack-3.0/lib/rack.rb"), folder
        assert_equal "app/a.rb", places.short("#{folder}/app/a.rb")
      end
    end
  end

  def test_gems_within_it_and_rubys_own_library_are_not
    refute @places.own?("#{@root}/vendor/bundle/ruby/3.3.0/gems/rack-3.0/lib/rack.rb")
    Gem.path.each { |path| refute @places.own?("#{path}/gems/rack-3.0/lib/rack.rb") }
    refute @places.own?("#{RbConfig::CONFIG["rubylibdir"]}/set.rb")
  end

  def test_bundler_may_be_loaded_without_a_gemfile
    Bundler.stub(:bundle_path, -> { raise Bundler::GemfileNotFound }) do
      assert Pando::CodePlaces.new(@root).own?("#{@root}/app/a.rb")
    end
  end

  def test_gems_are_known_by_the_real_name_of_their_folder
    FileUtils.mkdir_p("#{@root}/gems")
    Dir.mktmpdir do |elsewhere|
      File.symlink("#{@root}/gems", link = "#{elsewhere}/gems")
      Gem.stub(:path, [link]) { refute Pando::CodePlaces.new(@root).own?("#{@root}/gems/rack-3.0/lib/rack.rb") }
    end
  end

  def test_a_file_of_a_gem_belongs_to_the_gem
    assert_equal "rack-protection", @places.library("/usr/gems/rack-protection-4.2.1/lib/rack/protection.rb")
    assert_nil @places.library("#{@root}/vendor/gems/own-1.0/a.rb".sub("/vendor", "/lib"))
    assert_nil @places.library("/usr/lib/ruby/3.3.0/csv.rb")
  end

  def test_a_path_is_shortened_to_what_is_the_same_on_each_machine
    assert_equal "app/a.rb", @places.short("#{@root}/app/a.rb")
    assert_equal "rack-3.0.1/lib/rack.rb", @places.short("/srv/gems/ruby/3.3.0/gems/rack-3.0.1/lib/rack.rb")
    assert_equal "pando/sys.rb", @places.short("#{Pando::CodePlaces::OWN_LIBRARY}pando/sys.rb")
    assert_equal "/elsewhere/a.rb", @places.short("/elsewhere/a.rb")
  end

  def test_the_line_to_show_is_the_applications
    frames = [Frame.new("/usr/gems/a-1/a.rb", 1), Frame.new("#{@root}/b.rb", 2), Frame.new("#{@root}/c.rb", 3)]

    assert_equal ["#{@root}/b.rb", 2], @places.line_of(frames)
  end

  def test_without_one_it_is_the_line_that_asked_the_loader
    frames = [Frame.new("<internal:/usr/rubygems/core_ext/kernel_require.rb>", 1),
              Frame.new("#{Pando::CodePlaces::OWN_LIBRARY}pando/http/direct_handler.rb", 2),
              Frame.new("/usr/gems/zeitwerk-2.6/lib/zeitwerk/kernel.rb", 3), Frame.new("/usr/gems/a-1/a.rb", 4)]

    assert_equal ["/usr/gems/a-1/a.rb", 4], @places.line_of(frames)
    assert_nil @places.line_of(frames.first(3))
  end
end
