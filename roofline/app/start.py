"""What ``roofline app`` runs: ``streamlit run`` wants a file."""

from roofline.app.desk import main

if __name__ == "__main__":
    main()
