# frozen_string_literal: true

require "zlib"

# The pages of the site in both languages, with their elements, pictures and files. First come all drafts, so that the
# first numbers of rows are theirs; then all pages are published.
class Content
  SECTIONS = %w[company products services research careers press].freeze
  LANGUAGES = { "en" => "English", "de" => "Deutsch" }.freeze
  PAGES = 6 # of a section
  NOTES = 60
  PICTURES = 60
  FILES = 60
  TAGS = %w[archive blue draft event featured green history launch].freeze
  WORDS = %w[amber birch cedar delta ember fjord grove heath inlet jetty knoll ledge maple north ocean pine].freeze
  TODAY = Time.utc(2026, 1, 1)

  def initialize(random)
    @random = random
  end

  def fill
    @pictures = (1..PICTURES).map { |number| picture(number) }
    @files = (1..FILES).map { |number| file(number) }
    site = Alchemy::Site.create!(name: "The lab", host: "*")
    Alchemy::Current.site = site
    LANGUAGES.each { |code, name| tree(language(site, code, name)) }
    ActiveRecord::Base.no_touching { compose }
    @pages.each { |page| Alchemy::Page::Publisher.new(page).publish!(public_on: TODAY - page.id.hours) }
  end

  private

  def words(count) = WORDS.sample(count, random: @random).join(" ")
  def tags = TAGS.sample(2, random: @random)

  def picture(number)
    size = { width: 1600, height: 900, identified: true, analyzed: true }
    Alchemy::Picture.create!(name: "#{words(2)} #{number}", tag_names: tags, upload_hash: "lab", image_file: {
                               io: StringIO.new(image(number)), filename: "picture-#{number}.png",
                               content_type: "image/png", metadata: size
                             })
  end

  # A PNG of one pixel.
  def image(shade)
    head = [1, 1, 8, 0, 0, 0, 0].pack("N2C5")
    chunks = { "IHDR" => head, "IDAT" => Zlib.deflate([0, shade].pack("C2")), "IEND" => "" }
    parts = chunks.map { |type, data| [data.size, type, data, Zlib.crc32(type + data)].pack("Na*a*N") }
    "\x89PNG\r\n\x1A\n".b + parts.join
  end

  def file(number)
    Alchemy::Attachment.create!(name: "#{words(2)} #{number}", tag_names: tags, file: {
                                  io: StringIO.new(words(16)), filename: "file-#{number}.txt",
                                  content_type: "text/plain", metadata: { identified: true, analyzed: true }
                                })
  end

  def language(site, code, name)
    Alchemy::Language.create!(site: site, language_code: code, name: name, default: code == "en", public: true,
                              frontpage_name: "Home", page_layout: "index")
  end

  def tree(language)
    root = page("Home", nil, language, page_layout: "index", language_root: true)
    menu = Alchemy::Node.create!(menu_type: "main_menu", language: language)
    SECTIONS.each { |name| branch(name, (1..PAGES).map { |number| "Page #{number}" }, root, menu) }
    branch("notes", (1..NOTES).map { |number| "Note #{number}" }, root, menu) if language.default
    branch("members", (1..PAGES).map { |number| "Page #{number}" }, root, menu, restricted: true)
  end

  def branch(name, names, root, menu, **more)
    section = page(name.capitalize, root, root.language, page_layout: "section", **more)
    pages = names.map { |child| page(child, section, root.language, page_layout: "standard", **more) }
    node = Alchemy::Node.create!(parent: menu, language: root.language, page: section, title: words(3))
    pages.first(5).each { |child| Alchemy::Node.create!(parent: node, language: root.language, page: child) }
  end

  def page(name, parent, language, **more)
    page = Alchemy::Page.create!(name: name, parent: parent, language: language, tag_names: tags, **more)
    page.draft_version.update!(title: "#{name}: #{words(3)}", meta_description: words(12), meta_keywords: words(4))
    page
  end

  def compose
    @pages = Alchemy::Page.order(:id).to_a
    @pages.each do |page|
      version = page.draft_version
      @random.rand(1..2).times { article(version) }
      teaser(version)
      gallery(version) if (page.id % 4).zero?
    end
  end

  def element(version, name, values, **more)
    element = Alchemy::Element.create!(name: name, page_version: version, **more)
    element.ingredients.each { |ingredient| ingredient.update!(values.fetch(ingredient.role.to_sym)) }
    element
  end

  def article(version)
    text = (1..4).map { "<p>#{words(14).capitalize}, <strong>#{words(3)}</strong> #{words(14)}.</p>" }.join
    element(version, "article", { headline: { value: words(4).capitalize }, text: { value: text }, picture: shown },
            tag_names: tags)
  end

  def shown = { related_object: @pictures.sample(random: @random) }

  def teaser(version)
    element(version, "teaser", {
              title: { value: words(3).capitalize, data: { link: "/notes/note-#{@random.rand(1..NOTES)}" } },
              page: { related_object: @pages.sample(random: @random) }, kind: { value: "event" },
              file: { related_object: @files.sample(random: @random) }, pinned: { value: true },
              from: { value: TODAY + @random.rand(90).days }
            })
  end

  def gallery(version)
    gallery = element(version, "gallery", { title: { value: words(2).capitalize } })
    5.times { element(version, "slide", { picture: shown, caption: { value: words(5) } }, parent_element: gallery) }
  end
end
